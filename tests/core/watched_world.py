"""A small world for the tests of watching: catalogs in the archive, trials, decisions."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from offers_and_trials import offer, plain, trial

from underdog.catalog import archive, snapshot
from underdog.core.columns import OFFER_COLUMNS
from underdog.core.watched import Finding, Judged
from underdog.model import Decision, Software
from underdog.store import open_store
from underdog.verbs import choose
from underdog.verbs.watch import Round, Watch, look

__all__ = ["TORCH", "A", "B", "World", "codes", "decided_in", "offer", "plain", "trial"]

TORCH = Software(framework="torch", framework_version="2.12.0", driver="550.90.07")


class World:
    """A store and an archive of one test; what is asked of the verbs is asked as users do."""

    def __init__(self, folder: Path) -> None:
        self.store = str(folder / "store.sqlite3")
        self.told: list[str] = []

    def catalog(self, *rows: dict[str, Any], date: str = "2026-11-30") -> str:
        """A new snapshot; returns its hash."""
        whole = [{c.name: row.get(c.name) for c in OFFER_COLUMNS} for row in rows]

        def write(path: Path) -> str:
            return snapshot.write(path, whole, date=date, sources=[], left_out=[])

        with archive.locked():  # each is later than those before, and than the bundled one
            return archive.add(write, datetime(2100, 1, 1, tzinfo=UTC)).hash

    def measured(self, kind: str, *rates: float, day: int = 20, **more: Any) -> None:
        """Trials on a machine, one a day from that day of November on."""
        made = []
        for k, rate in enumerate(rates):
            given: dict[str, Any] = {
                "id": f"{kind}-{uuid.uuid4().hex[:8]}",
                "started_at": f"2026-11-{day + k:02d}T00:00:00+00:00",
                "software": TORCH,
                **more,
            }
            made.append(trial(kind, rate, **given))
        with open_store(self.store) as store:
            store.save(*made)

    def chosen(self, workload: str = "gpt", **asked: Any) -> Decision:
        """Choose, with the decision kept."""
        return choose.choose(workload, store=self.store, **asked)

    def decisions(self) -> list[Decision]:
        with open_store(self.store) as store:
            return store.decisions()

    def change(self, decision: Decision, **fields: Any) -> Decision:
        """The stored decision with other fields."""
        changed = dataclasses.replace(decision, ledger=[], **fields)
        with open_store(self.store) as store:
            store.save(changed)
        return changed

    def look(self, **asked: Any) -> Round:
        given: dict[str, Any] = {"refresh": False, "store": self.store, **asked}
        return look(Watch(**given), self.told.append)

    def judged(self, **asked: Any) -> Judged:
        (one,) = self.look(**asked).judged
        return one


# samples per dollar of 100 and 90 samples/s at one dollar: A leads
A, B = offer("a.large", 1.0), offer("b.large", 1.0, accelerator="L4")


def decided_in(folder: Path) -> Path:
    """A folder with store and archive in which A leads B by what was measured of both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder))
        world = World(folder)
        world.catalog(A, B)
        world.measured("a.large", 100.0)
        world.measured("b.large", 90.0)
        found = world.chosen()
    assert found.best_measured == "aws/us-east-1/a.large/on-demand"
    return folder


def codes(found: Judged | Sequence[Finding]) -> dict[str, str]:
    """The weight of each finding by its code."""
    findings = found.findings if isinstance(found, Judged) else found
    return {finding.code: finding.weight for finding in findings}
