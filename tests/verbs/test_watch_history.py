"""Watching the user's own history of throughput, and decisions of an older format."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from watched_world import TORCH, A, B, World, codes

from underdog.core import footing
from underdog.core.history import shifts
from underdog.model import Decision
from underdog.verbs.choose import Options


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("catalog")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(folder))
        made = World(folder)
        made.catalog(A, B)
        made.measured("z.large", 1.0, workload="other")
    return folder


@pytest.fixture
def world(tmp_path: Path, catalog: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    shutil.copytree(catalog, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return World(tmp_path)


def runs(world: World, level: float, day: int, count: int, **more: Any) -> None:
    """A run a day at that level, with noise of a hundredth."""
    noise = np.random.default_rng(day).normal(scale=0.01, size=count)
    world.measured("a.large", *(level * np.exp(noise)).tolist(), day=day, **more)


def test_a_regression_of_the_winner_asks_for_the_runner_up(world: World) -> None:
    runs(world, 100.0, 1, 8)
    world.measured("b.large", 50.0, day=1)
    world.chosen()
    runs(world, 75.0, 10, 4, software=dataclasses.replace(TORCH, driver="560.1"))
    found = world.judged()
    assert (found.verdict, codes(found)) == ("open", {"regression": "open"})
    (told,) = found.findings
    assert "fell by 2" in told.message
    assert "from 2026-11-10 on, with driver 550.90.07 to 560.1" in told.message
    assert [test.machine.instance_type for test in found.tests] == ["b.large"]
    # only what was measured since the fall counts
    assert found.now is not None
    assert found.now.utility is not None
    assert found.now.utility["value"] == pytest.approx(75 * 3600, rel=0.02)


def test_a_regression_below_the_runner_up_ends_it(world: World) -> None:
    runs(world, 100.0, 1, 8)
    world.measured("b.large", 90.0, day=1)
    world.chosen()
    runs(world, 75.0, 10, 4)
    found = world.judged()
    assert (found.verdict, found.gain) == ("falls", pytest.approx(90 / 75 - 1, abs=0.02))
    assert codes(found)["regression"] == "note"
    assert "no change of software that was recorded" in found.findings[-1].message


def test_a_gain_is_told_with_what_came_with_it(world: World) -> None:
    runs(world, 100.0, 1, 5, software=dataclasses.replace(TORCH, settings={}))
    world.chosen()
    compiled = dataclasses.replace(TORCH, settings={"compile": True})
    runs(world, 140.0, 10, 4, software=compiled)
    found = world.judged()
    assert (found.verdict, codes(found)) == ("stands", {"gain": "note"})
    said = found.findings[0].message
    assert re.search(r"rose by (39|40|41)% .*, with compile none to True", said)


def test_a_change_that_the_decision_has_seen_is_no_news(world: World) -> None:
    runs(world, 100.0, 1, 5)
    runs(world, 75.0, 10, 4)
    world.chosen()
    assert world.judged().verdict == "stands"


def test_other_knobs_and_machines_are_other_series(world: World) -> None:
    runs(world, 100.0, 1, 5, knobs={"batch": "8"})
    runs(world, 200.0, 10, 5, knobs={"batch": "16"})
    assert shifts(world_trials(world)) == []


def world_trials(world: World) -> list[Any]:
    from underdog.store import open_store

    with open_store(world.store) as store:
        return store.trials()


def test_what_a_decision_was_asked_is_kept(world: World) -> None:
    world.measured("a.large", 100.0)
    asked = {"by": "dollars_to_train", "samples": 1e6, "deadline": "48h", "nodes": (1, 2)}
    made = world.chosen(**asked, where="vcpus > 2", limit=3)
    assert made.rests_on["asked"] == {**asked, "nodes": [1, 2], "where": "vcpus > 2"}
    assert made.rests_on["tests"] == 1
    assert made.rests_on["driver"] == "550.90.07"
    (kept,) = world.decisions()
    assert kept.rests_on == made.rests_on
    assert Options(**footing.question(kept)[0]).deadline == "48h"


def older(made: Decision) -> Decision:
    """As it was stored before it kept what it rests on."""
    document = msgspec.to_builtins(made)
    del document["rests_on"]
    return msgspec.convert(document, Decision)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"by": "samples_per_second"},
        {"by": "price_per_hour / samples_per_second", "better": "lower"},
        {"where": "vcpus > 2 and region = 'us-east-1'", "purchase": ("on-demand",)},
    ],
)
def test_a_decision_of_an_older_format_is_read_from_its_words(
    world: World, asked: dict[str, Any]
) -> None:
    world.measured("a.large", 100.0)
    made = world.chosen(**asked)
    world.change(older(made))
    assert world.judged().verdict == "stands"
    # and it is the same question as one of today
    assert footing.key(older(made)) == footing.key(made)


@pytest.mark.parametrize(
    "asked",
    [
        {"by": "dollars_to_train", "samples": 1e6},
        {"samples": 1e6, "budget": 1e6},
        {"by": "samples_per_dollar, samples_per_second", "tolerance": 0.1},
        {"nodes": (2,)},
    ],
)
def test_what_an_older_format_does_not_tell_is_not_guessed(
    world: World, asked: dict[str, Any]
) -> None:
    world.measured("a.large", 100.0)
    world.change(older(world.chosen(**asked)))
    found = world.judged()
    assert (found.verdict, codes(found)) == ("unknown", {"cannot_tell": "note"})
    assert "choose again" in found.findings[0].message


@pytest.mark.parametrize(
    "fields",
    [
        {"ranking": [{"offer": {"id": "x"}}]},
        {"ranking": [{"offer": None, "rank": 1}]},
        {"rests_on": {"asked": {"by": "no such column"}}},
        {"rests_on": {"asked": {"of_a_later_version": 1}}},
        {"rests_on": {"asked": {"offers": "/no/such/file.csv"}}},
        {"rests_on": {"asked": {"nodes": "many"}}},
    ],
)
def test_a_damaged_decision_is_told_and_the_others_are_judged(
    world: World, fields: dict[str, Any]
) -> None:
    world.measured("a.large", 100.0)
    made = world.chosen()
    world.change(made, **fields)
    world.chosen(by="samples_per_second")
    found = world.look()
    assert [one.verdict for one in found.judged] == ["unknown", "stands"]
    assert found.status == 2


def test_a_file_of_offers_is_read_again(world: World, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    head = "provider,region,instance_type,price_per_hour,accelerator,accelerator_count\n"
    path.write_text(head + "aws,us,a.large,1.0,A10G,1\naws,us,b.large,1.0,L4,1\n")
    world.measured("a.large", 100.0)
    world.measured("b.large", 90.0)
    world.chosen(offers=path)
    assert world.judged().verdict == "stands"
    path.write_text(head + "aws,us,a.large,1.0,A10G,1\naws,us,b.large,0.5,L4,1\n")
    assert world.judged().verdict == "falls"


def test_what_was_said_of_spot_counts_again(world: World) -> None:
    spot = A | {"purchase": "spot", "price_per_hour": 0.5}
    world.catalog(A, spot)
    world.measured("a.large", 100.0)
    calm = world.chosen()
    often = world.chosen(by="dollars_to_train", samples=1e7, interruptions_per_hour=3.0)
    found = {one.id: one for one in world.look().judged}
    for made in (calm, often):
        one, first = found[made.id], made.ranking[0]
        assert one.now is not None
        assert (one.verdict, one.now.offer) == ("stands", first["offer"]["id"])
        assert one.now.utility == pytest.approx(first["utility"], rel=1e-6)
