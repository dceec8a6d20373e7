"""A decision with a deadline keeps its plans of spot and on demand."""

from __future__ import annotations

from pathlib import Path

import pytest
from watched_world import A, World


def test_the_plans_are_kept_with_the_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    world = World(tmp_path)
    world.catalog(A, A | {"purchase": "spot", "price_per_hour": 0.3})
    world.measured("a.large", 100.0)
    asked = {"by": "dollars_to_train", "samples": 100 * 3600 * 38.4, "deadline": "48h"}
    found = world.chosen(**asked)
    (plan,) = found.plans
    assert plan["cheapest"]
    assert (plan["spot"], plan["from"]) == ("aws/us-east-1/a.large/spot", "prior")
    assert "spot_may_be_late" in [caveat.code for caveat in found.caveats]
    (stored,) = world.decisions()
    assert stored.plans == found.plans
    assert world.chosen(**{k: v for k, v in asked.items() if k != "deadline"}).plans == []
