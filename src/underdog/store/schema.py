"""The tables, and the revision of them that this version reads and writes.

Their names begin with ours, so that a PostgreSQL database can be shared with other programs.
"""

from __future__ import annotations

import sqlalchemy as sa

HEAD = "0001"  # the newest file of migrations/versions

metadata = sa.MetaData()

version = sa.Table(
    "underdog_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

trials = sa.Table(
    "underdog_trials",
    metadata,
    # grows with every first saving: the order in which records are listed
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("workload", sa.Text, nullable=False, index=True),
    sa.Column("status", sa.Text, nullable=False, index=True),
    sa.Column("started_at", sa.Text, nullable=False),
    sa.Column("provider", sa.Text),
    sa.Column("instance_type", sa.Text),
    sa.Column("saved_at", sa.Float, nullable=False),  # Unix time; of a running trial its last sign
    sa.Column("document", sa.Text, nullable=False),
)

decisions = sa.Table(
    "underdog_decisions",
    metadata,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("workload", sa.Text, nullable=False, index=True),
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("saved_at", sa.Float, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
)
