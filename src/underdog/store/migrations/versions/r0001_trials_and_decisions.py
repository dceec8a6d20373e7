"""Trials and decisions as documents, with the columns that are searched."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the two tables."""
    op.create_table(
        "underdog_trials",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("workload", sa.Text, nullable=False, index=True),
        sa.Column("status", sa.Text, nullable=False, index=True),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("provider", sa.Text),
        sa.Column("instance_type", sa.Text),
        sa.Column("saved_at", sa.Float, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_table(
        "underdog_decisions",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("workload", sa.Text, nullable=False, index=True),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("saved_at", sa.Float, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Drop the two tables."""
    op.drop_table("underdog_decisions")
    op.drop_table("underdog_trials")
