"""The tables, and the revision of them that this version reads and writes.

Their names begin with ours, so that a PostgreSQL database can be shared with other programs.
"""

from __future__ import annotations

import sqlalchemy as sa

HEAD = "0003"  # the newest file of migrations/versions

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
    sa.Column("study", sa.Text, index=True),
    # apart from the document, and last, so that who reads many trials does not read it
    sa.Column("timeline", sa.Text),
    sa.Index("ix_underdog_trials_tally", "workload", "status", "study", "started_at"),
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

attempts = sa.Table(
    "underdog_attempts",
    metadata,
    sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("provider", sa.Text, nullable=False, index=True),
    sa.Column("region", sa.Text, nullable=False),
    sa.Column("zone", sa.Text, nullable=False),
    sa.Column("instance_type", sa.Text, nullable=False, index=True),
    sa.Column("purchase", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False, index=True),  # Unix time at which it was asked
    sa.Column("saved_at", sa.Float, nullable=False),
    sa.Column("document", sa.Text, nullable=False),
)
