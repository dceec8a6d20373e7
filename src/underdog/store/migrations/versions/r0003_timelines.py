"""The timeline of a trial and the study that asked for it, in columns of their own."""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

from underdog.errors import StoreError
from underdog.model import Trial
from underdog.store import document

revision = "0003"
down_revision = "0002"

_AT_ONCE = 500  # rows per statement

_trials = sa.table(
    "underdog_trials",
    sa.column("number", sa.BigInteger),
    sa.column("study", sa.Text),
    sa.column("document", sa.Text),
)


def upgrade() -> None:
    """Add the columns; the study of a trial is told by its document."""
    op.add_column("underdog_trials", sa.Column("study", sa.Text))
    op.add_column("underdog_trials", sa.Column("timeline", sa.Text))
    connection = op.get_bind()
    number = sa.bindparam("at", type_=sa.BigInteger)
    change = _trials.update().where(_trials.c.number == number)
    for found in _studies(connection):
        connection.execute(change.values(study=sa.bindparam("asked")), found)
    op.create_index("ix_underdog_trials_study", "underdog_trials", ["study"])
    op.create_index(
        "ix_underdog_trials_tally", "underdog_trials", ["workload", "status", "study", "started_at"]
    )


def _studies(connection: sa.Connection) -> Iterator[list[dict[str, object]]]:
    """Trials by number with the id of their study, some at a time."""
    last = 0
    query = sa.select(_trials.c.number, _trials.c.document).order_by(_trials.c.number)
    told = query.where(_trials.c.document.like('%"study":%')).limit(_AT_ONCE)
    while rows := connection.execute(told.where(_trials.c.number > last)).all():
        last = rows[-1].number
        found = [{"at": row.number, "asked": _study(row.document)} for row in rows]
        if known := [one for one in found if one["asked"] is not None]:
            yield known


def _study(text: str) -> str | None:
    try:
        found = document.decode(Trial, text).study
    except StoreError:
        return None  # told when the trial is asked for
    return None if found is None else document.key(found)


def downgrade() -> None:
    """Drop the columns."""
    op.drop_index("ix_underdog_trials_tally", "underdog_trials")
    op.drop_index("ix_underdog_trials_study", "underdog_trials")
    op.drop_column("underdog_trials", "timeline")
    op.drop_column("underdog_trials", "study")
