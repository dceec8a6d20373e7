"""Layers of service on offers: the cheapest of each, and where they break even."""

from __future__ import annotations

from typing import Any

import pytest
from offers_and_trials import chosen, offer, trial

from underdog.core import layers, services
from underdog.core.layers import BARE, Service, Volume
from underdog.core.services import HOURS_PER_MONTH, Api, Rented

H = HOURS_PER_MONTH
# 100 samples a second measured on g5.xlarge; 262.8 million a month at most
ROWS = [
    offer("g5.xlarge", 1.0),
    offer("g5.xlarge", 0.9, region="us-west-2"),
    offer("g5.xlarge", 0.3, purchase="spot"),
    offer("ml.g5.xlarge", 1.4, service="sagemaker"),
    offer("g6.xlarge", 0.01, accelerator="L4", compute_capability=8.9),  # only predicted
]
API = Api(name="acme", per_request=1e-5)


def compared(volume: Volume, **more: Any) -> dict[str, Any]:
    rows = more.pop("rows", ROWS)
    return layers.compare(chosen(rows, [trial()]), volume, **more)


def ways(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(layer["name"], layer["way"]): layer for layer in found["layers"]}


def test_a_month_by_hand() -> None:
    found = compared(Volume(samples=36e6, hours=H), apis=[API])
    by = ways(found)
    # 100 hours of work; what is kept is never a spot machine, and the cheapest region counts
    assert by[BARE, "kept"]["offer"] == "aws/us-west-2/g5.xlarge/on-demand"
    assert by[BARE, "kept"]["cost"]["value"] == pytest.approx(0.9 * H)
    assert by[BARE, "kept"]["busy"] == pytest.approx(100 / H)
    assert by["sagemaker", "given_back"]["cost"]["value"] == pytest.approx(140)
    assert by["sagemaker", "kept"]["cost"]["value"] == pytest.approx(1.4 * H)
    assert by["acme", "per_unit"]["cost"]["value"] == pytest.approx(360)
    assert by["sagemaker", "kept"]["source"] == "measured"  # as the bare one, which was
    assert all(layer["source"] != "predicted" for layer in found["layers"])
    costs = [layer["cost"]["value"] for layer in found["layers"]]
    assert costs == sorted(costs)


def test_spot_counts_by_the_share_of_time_that_is_progress() -> None:
    by = ways(compared(Volume(samples=36e6, hours=H)))
    spot = by[BARE, "given_back"]
    assert spot["offer"] == "aws/us-east-1/g5.xlarge/spot"
    assert 30 < spot["cost"]["value"] < 40


def test_the_break_even_of_an_api_and_of_a_managed_service() -> None:
    found = compared(Volume(samples=36e6, hours=H), apis=[API])
    meets = {meeting["name"]: meeting for meeting in found["break_even"]}
    acme = meets["acme"]
    assert acme["below"] == pytest.approx(0.9 * H / 1e-5)
    assert (acme["offer"], acme["against"]) == ("aws/us-west-2/g5.xlarge/on-demand", BARE)
    machine = Rented(price_per_hour=0.9, samples_per_second=100)
    assert services.kept(machine, acme["below"], H) == pytest.approx(acme["below"] * 1e-5)
    # one dollar forty while it works, ninety cents all the time
    assert meets["sagemaker"]["below"] == pytest.approx(0.9 * H / 1.4 * 360_000)
    assert meets["sagemaker"]["against"] == BARE


def test_an_api_that_no_machine_beats() -> None:
    found = compared(Volume(samples=1e6, hours=H), apis=[Api(name="gift", per_request=1e-12)])
    (meeting,) = [m for m in found["break_even"] if m["name"] == "gift"]
    assert meeting["below"] is None
    assert meeting["offer"] is None


def test_more_machines_and_less_use_cost_more() -> None:
    volume = Volume(samples=300e6, hours=H)
    twice = ways(compared(volume))[BARE, "kept"]
    assert twice["machines"] == 2
    assert twice["cost"]["value"] == pytest.approx(2 * 0.9 * H)
    half = ways(compared(Volume(samples=300e6, hours=H, utilisation=0.5)))[BARE, "kept"]
    assert half["machines"] == 3
    assert half["busy"] <= 0.5


def test_one_job_and_its_idle_hours() -> None:
    found = compared(Volume(samples=36e6, idle_hours=2.0), apis=[API])
    assert all(way in ("given_back", "per_unit") for _, way in ways(found))
    managed = ways(found)["sagemaker", "given_back"]
    assert managed["cost"]["value"] == pytest.approx(1.4 * 102)
    (meeting,) = found["break_even"]
    assert meeting["below"] == pytest.approx(meeting["always"])
    assert 0 < meeting["below"] < 36e6


def test_a_service_at_the_price_of_the_bare_machine() -> None:
    same = Service(name="aml", provider="aws", factor=1.0, source="a page", date="2026-01-01")
    by = ways(compared(Volume(samples=36e6, hours=H), managed=[same]))
    assert by["aml", "kept"]["cost"] == by[BARE, "kept"]["cost"]
    assert by["aml", "kept"]["price_from"] == "a page, 2026-01-01"
    other = Service(name="x", provider="gcp", factor=1.0, source="a page", date="2026-01-01")
    assert "x" not in {name for name, _ in ways(compared(Volume(samples=1e6), managed=[other]))}


def test_what_would_take_a_million_machines_is_not_kept() -> None:
    found = compared(Volume(samples=1e20, hours=H))
    assert {way for _, way in ways(found)} == {"given_back"}


def test_what_is_ruled_out_is_no_layer() -> None:
    rows = [offer("g5.xlarge", 1.0), offer("ml.g5.xlarge", None, service="sagemaker")]
    found = compared(Volume(samples=1e6, hours=H), rows=rows)
    assert {name for name, _ in ways(found)} == {BARE}
    nothing = compared(Volume(samples=1e6, hours=H), rows=[offer("g5.xlarge", None)], apis=[API])
    assert [layer["name"] for layer in nothing["layers"]] == ["acme"]
    assert nothing["break_even"][0]["below"] is None


def test_the_order_of_the_offers_does_not_matter() -> None:
    volume = Volume(samples=36e6, hours=H)
    assert compared(volume, apis=[API]) == compared(volume, apis=[API], rows=ROWS[::-1])
