"""Attempts to get machines."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "underdog_attempts",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("provider", sa.Text, nullable=False, index=True),
        sa.Column("region", sa.Text, nullable=False),
        sa.Column("zone", sa.Text, nullable=False),
        sa.Column("instance_type", sa.Text, nullable=False, index=True),
        sa.Column("purchase", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False, index=True),
        sa.Column("saved_at", sa.Float, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("underdog_attempts")
