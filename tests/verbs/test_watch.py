"""Watching: each change of the world with the verdict that it must lead to."""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from watched_world import TORCH, A, B, World, codes, decided_in, offer, plain

from underdog.errors import UsageError
from underdog.model import Price
from underdog.verbs.watch import watch


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return World(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decided_in(tmp_path_factory.mktemp("decided"))


@pytest.fixture
def decided(world: World, made: Path, tmp_path: Path) -> World:
    """A world of one test in which A leads by what was measured of both."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return world


def priced(row: dict[str, Any], price: float | None) -> dict[str, Any]:
    return row | {
        "price_per_hour": price,
        "price_unknown_reason": None if price else "none is told",
    }


def test_nothing_changed_and_it_stands(decided: World) -> None:
    found = decided.judged()
    assert (found.verdict, found.gain, list(found.findings)) == ("stands", 0.0, [])
    assert found.rests_on["tests"] == 2
    assert found.rests_on["software"] == {"torch": "2.12.0", "driver": "550.90.07"}
    assert decided.look().status == 0


def test_a_price_drop_of_the_runner_up_flips_it(decided: World) -> None:
    decided.catalog(A, priced(B, 0.6))
    found = decided.judged()
    assert found.verdict == "falls"
    assert found.now is not None
    assert found.now.offer == "aws/us-east-1/b.large/on-demand"
    assert found.gain == pytest.approx((90 / 0.6) / 100 - 1)
    (flip,) = [f for f in found.findings if f.code == "lead_lost"]
    assert "+50.0%" in flip.message
    assert "b.large/on-demand went from 1 to 0.6 USD/h" in flip.message
    assert decided.look().status == 1


def test_a_rise_of_the_winner_flips_it(decided: World) -> None:
    decided.catalog(priced(A, 2.0), B)
    found = decided.judged()
    assert (found.verdict, found.gain) == ("falls", pytest.approx(90 / 50 - 1))


def test_of_a_cost_the_gain_counts_the_other_way(world: World) -> None:
    world.catalog(A, B)
    world.measured("a.large", 100.0)
    world.measured("b.large", 90.0)
    world.chosen(by="dollars_per_million_samples")
    world.catalog(A, priced(B, 0.6))
    found = world.judged()
    assert (found.verdict, found.gain) == ("falls", pytest.approx((90 / 0.6) / 100 - 1))


def test_a_raise_of_a_loser_does_not_flip_it(decided: World) -> None:
    decided.catalog(A, priced(B, 3.0))
    found = decided.judged()
    assert (found.verdict, codes(found)) == ("stands", {})


def test_a_move_of_the_winner_without_a_flip_is_told(decided: World) -> None:
    decided.catalog(priced(A, 0.9), B)
    found = decided.judged()
    assert (found.verdict, codes(found)) == ("stands", {"price_moved": "note"})
    assert "-10.0%" in found.findings[0].message


def test_a_flip_within_the_noise_needs_a_test(decided: World) -> None:
    decided.catalog(A, priced(B, 0.88))  # 102 against 100, each known to 2 %
    found = decided.judged()
    assert (found.verdict, codes(found)) == ("open", {"lead_open": "open"})
    assert {test.machine.instance_type for test in found.tests} == {"a.large", "b.large"}
    assert decided.look().status == 0


def test_a_flip_by_a_hair_changes_nothing(decided: World) -> None:
    decided.catalog(A, priced(B, 0.8999))
    found = decided.judged()
    assert (found.verdict, codes(found)) == ("stands", {"about_equal": "note"})


def test_another_region_of_the_same_machine_may_lead(decided: World) -> None:
    decided.catalog(A, A | {"region": "eu-west-1", "price_per_hour": 0.8}, B)
    found = decided.judged()
    assert found.now is not None
    assert (found.verdict, found.now.offer) == ("falls", "aws/eu-west-1/a.large/on-demand")
    assert found.gain == pytest.approx(0.25)


def test_the_winner_is_gone(decided: World) -> None:
    decided.catalog(B)
    found = decided.judged()
    assert (found.verdict, found.gain) == ("falls", None)
    assert codes(found) == {"type_gone": "falls", "leads_now": "note"}
    assert found.now is not None
    assert found.now.machine.instance_type == "b.large"


def test_the_winner_is_sold_elsewhere_only(decided: World) -> None:
    decided.catalog(A | {"region": "eu-west-1"}, B)
    assert codes(decided.judged()) == {"offer_gone": "falls", "leads_now": "note"}


def test_all_is_gone(decided: World) -> None:
    decided.catalog(plain("c.large", price=None))
    found = decided.judged()
    assert (found.verdict, found.now) == ("falls", None)
    assert codes(found) == {"type_gone": "falls", "none_left": "falls"}


def test_the_price_of_the_winner_is_unknown_now(decided: World) -> None:
    decided.catalog(priced(A, None), B)
    found = decided.judged()
    assert codes(found)["ruled_out"] == "falls"
    assert (
        "the price of aws/us-east-1/a.large/on-demand is unknown now" in found.findings[0].message
    )


@pytest.mark.parametrize("price", [0.0, -1.0, math.nan])
def test_a_price_that_cannot_be_never_wins(decided: World, price: float) -> None:
    decided.catalog(A, B | {"price_per_hour": price})
    assert decided.judged().verdict == "stands"


def test_the_winner_is_ruled_out_by_its_condition(world: World) -> None:
    world.catalog(A, B)
    world.measured("a.large", 100.0)
    world.measured("b.large", 90.0)
    world.chosen(where="price_per_hour < 1.5")
    world.catalog(priced(A, 1.6), B)
    found = world.judged()
    assert "by where: price_per_hour < 1.5" in found.findings[0].message
    assert found.now is not None
    assert found.now.machine.instance_type == "b.large"


def test_a_new_type_that_could_win_is_named_with_its_test(decided: World) -> None:
    new = offer("new.large", 1.2, accelerator="H9", fp32_tflops=90.0, accelerator_gb_per_s=1800)
    spot = new | {"purchase": "spot", "price_per_hour": 0.6}
    decided.catalog(A, B, new, spot)
    found = decided.judged()
    assert (found.verdict, codes(found)) == ("open", {"new_type": "open"})
    (test,) = found.tests
    # where the test costs least, ten minutes of it
    assert (test.offer, test.dollars) == ("aws/us-east-1/new.large/spot", pytest.approx(0.1))
    assert decided.look().dollars == pytest.approx(0.1)


def test_a_new_type_without_a_chance_is_not_told(decided: World) -> None:
    decided.catalog(A, B, offer("slow.large", 20.0, accelerator="K80", fp32_tflops=4.0))
    assert decided.judged().verdict == "stands"


def test_a_type_that_was_known_is_told_once_it_is_cheaper(world: World) -> None:
    other = offer("c.large", 5.0, accelerator="L4")
    world.catalog(A, other)
    world.measured("a.large", 100.0)
    world.chosen()
    assert world.judged().verdict == "stands"
    world.catalog(A, priced(other, 0.5))
    found = world.judged()
    assert (found.verdict, codes(found)) == ("open", {"cheaper": "open"})
    assert "went from 5 to 0.5 USD/h" in found.findings[0].message


def test_a_price_that_the_question_does_not_ask_about_is_no_news(world: World) -> None:
    other = offer("c.large", 5.0, accelerator="L4", fp32_tflops=90.0)
    world.catalog(A, other)
    world.measured("a.large", 100.0)
    world.chosen(by="samples_per_second")
    world.catalog(A, priced(other, 0.5))
    assert world.judged().verdict == "stands"


def test_without_its_catalog_new_types_cannot_be_told(decided: World) -> None:
    (decision,) = decided.decisions()
    decided.change(decision, snapshot="0" * 64)
    decided.catalog(A, B, offer("new.large", 0.1))
    found = decided.judged()
    assert (found.verdict, codes(found)) == ("stands", {"not_compared": "note"})


@pytest.mark.parametrize(
    ("software", "word"),
    [
        (dataclasses.replace(TORCH, framework_version="2.13.0+cpu"), "torch 2.13.0"),
        (dataclasses.replace(TORCH, driver="570.124.06"), "driver 570.124.06"),
    ],
)
def test_a_newer_release_among_the_trials(decided: World, software: Any, word: str) -> None:
    decided.measured("z.large", 5.0, workload="other", software=software)
    found = decided.judged()
    assert (found.verdict, codes(found)) == ("open", {"new_release": "open"})
    assert word in found.findings[0].message
    assert [test.machine.instance_type for test in found.tests] == ["a.large"]


def test_a_release_that_the_winner_was_measured_with_is_no_news(decided: World) -> None:
    newer = dataclasses.replace(TORCH, framework_version="2.13.0")
    decided.measured("a.large", 101.0, software=newer, started_at="2026-11-21T00:00:00Z")
    assert decided.judged().verdict == "stands"


def test_a_prerelease_is_no_newer_release(decided: World) -> None:
    newer = dataclasses.replace(TORCH, framework_version="2.13.0rc1")
    decided.measured("z.large", 5.0, workload="other", software=newer)
    assert decided.judged().verdict == "stands"


def test_measurements_grow_old(decided: World) -> None:
    assert codes(decided.judged(oldest_seconds=3600.0)) == {"old_measurement": "open"}
    assert decided.judged(oldest_seconds=1e9).verdict == "stands"


def test_a_decision_past_its_day(decided: World) -> None:
    (decision,) = decided.decisions()
    decided.change(decision, expires_at="2026-01-01T00:00:00+00:00")
    assert codes(decided.judged()) == {"expired": "open"}
    decided.catalog(A, priced(B, 1.01))
    found = decided.judged()
    assert (found.verdict, codes(found)) == ("stands", {"expired": "note"})


def test_a_clock_that_jumped(world: World) -> None:
    world.catalog(A, B)
    later = (datetime.now(UTC) + timedelta(days=4000)).isoformat()
    world.measured("a.large", 100.0, started_at=later)
    world.measured("b.large", 90.0, started_at="no time")
    world.change(world.chosen(), created_at=later, expires_at="soon")
    found = world.judged()
    assert (found.verdict, codes(found)) == ("stands", {"clock": "note"})


def test_what_was_measured_since_counts(decided: World) -> None:
    decided.measured("b.large", 150.0, knobs={"batch": "64"})
    found = decided.judged()
    assert (found.verdict, found.gain) == ("falls", pytest.approx(0.5))


def test_a_decision_that_rested_on_a_prediction(world: World) -> None:
    world.catalog(A, B, priced(offer("c.large"), None))
    world.measured("c.large", 100.0)  # it cannot be ranked
    first = world.chosen()
    assert first.ranking[0]["source"] == "predicted"
    assert world.judged().verdict == "stands"
    leader = first.ranking[0]["offer"]["instance_type"]
    other = "b.large" if leader == "a.large" else "a.large"
    world.measured(other, 1e6)
    found = world.judged()
    assert found.now is not None
    assert (found.verdict, found.now.source) == ("falls", "measured")


def test_of_one_question_the_latest_decision_counts(decided: World) -> None:
    decided.catalog(A, priced(B, 0.6))
    assert decided.judged().verdict == "falls"
    decided.chosen()
    assert decided.judged().verdict == "stands"
    decided.chosen(by="samples_per_second")
    assert [one.verdict for one in decided.look().judged] == ["stands", "stands"]


def test_no_trials_any_more(decided: World) -> None:
    (decision,) = decided.decisions()
    decided.change(decision, workload="gone")
    found = decided.look()
    assert found.status == 2
    assert "no trial of 'gone' is in the store any more" in found.judged[0].findings[0].message


def test_a_workload_without_a_decision(decided: World) -> None:
    with pytest.raises(UsageError, match="Did you mean 'gpt'"):
        decided.look(workloads=["gtp"])
    assert len(decided.look(workloads=["gpt"]).judged) == 1
    assert watch(refresh=False, store=decided.store).status == 0


def test_an_empty_store_has_nothing_to_tell(world: World) -> None:
    world.catalog(A)
    found = world.look()
    assert (found.judged, found.tests, found.status) == ([], [], 0)


def test_an_unlisted_machine_of_ones_own_stays(world: World) -> None:
    world.catalog(A)
    world.measured("a.large", 100.0)
    world.measured("mine", 100.0, price=Price(per_hour=0.1, source="--price"))
    assert world.chosen().ranking[0]["offer"]["instance_type"] == "mine"
    world.catalog(priced(A, 0.9))
    assert world.judged().verdict == "stands"
    world.catalog(priced(A, 0.05))
    assert world.judged().verdict == "falls"


def test_the_page_has_every_code_with_its_meaning() -> None:
    root = Path(__file__).parents[2]
    files = [root / "src/underdog/core" / f"{name}.py" for name in ("watch_lead", "watch_doubts")]
    files.append(root / "src/underdog/core/watching.py")
    used = set(re.findall(r'code(?:, about)? ?= ?"(\w+)"', "".join(f.read_text() for f in files)))
    table = (root / "docs/how-to/watch.md").read_text().partition("## What is found")[2]
    named = set(re.findall(r"`(\w+)`", table.partition("\n## ")[0].partition("\nA change of")[0]))
    assert used | {"regression", "gain"} == named
