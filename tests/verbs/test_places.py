"""Where a trial is to run: what is named, what may be meant, what is wrong."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from underdog import plugins, runners
from underdog.errors import UsageError
from underdog.verbs import places

MACHINES = """
[[offer]]
offer = "desk"
price_per_hour = 2.0

[[offer]]
offer = "box"
provider = "lab"
region = "cellar"
instance_type = "a100"
[offer.paper]
host = "me@box"

[[offer]]
offer = "either"
[offer.paper]
host = "me@either"
[offer.local]
"""


@pytest.fixture(autouse=True)
def paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that has to be told a host."""
    module = ModuleType("paper")
    fields = [("host", str), ("port", int, 22)]
    module.Target = msgspec.defstruct("Target", fields, forbid_unknown_fields=True)  # type: ignore[attr-defined]
    load = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda p, g, name: module if name == "paper" else load(p, g, name)
    )
    monkeypatch.setattr(runners, "names", lambda: ["local", "paper", "replay"])


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    path = tmp_path / "machines.toml"
    path.write_text(MACHINES)
    return path


@pytest.mark.parametrize("name", ["box", "BOX", "a100", "lab/cellar/a100/on-demand"])
def test_an_offer_of_the_file_brings_its_runner(name: str, machines: Path) -> None:
    place = places.find(name, offers=machines)
    assert (place.name, place.runner, place.target) == ("box", "paper", {"host": "me@box"})
    assert place.offer.id == "lab/cellar/a100/on-demand"


@pytest.mark.parametrize(
    ("on", "runner", "said"),
    [
        ("bix", None, "Did you mean 'box'?"),
        (None, "paper", "2 offers of '{file}' may be meant: box, either.\nName one with --on."),
        ("either", None, "'either' can be reached by local and paper.\nSay which: --runner local"),
        (None, "papr", "There is no runner 'papr'.\nDid you mean 'paper'?"),
        ("desk", "paper", "'desk' cannot be reached by paper: Object missing required field"),
    ],
)
def test_what_does_not_name_one_place(
    on: str | None, runner: str | None, said: str, machines: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        places.find(on, runner, machines)
    assert said.format(file=machines) in str(caught.value)


def test_a_key_that_there_is_not_is_named(tmp_path: Path) -> None:
    path = tmp_path / "machines.toml"
    path.write_text(MACHINES.replace('host = "me@box"', 'host = "me@box"\nprot = 2222'))
    with pytest.raises(UsageError, match=r"'box' cannot be reached by paper.*unknown field `prot`"):
        places.find("box", offers=path)


def test_an_offer_of_the_catalog_goes_to_any_cloud() -> None:
    place = places.find("aws/us-east-1/g5.xlarge/on-demand")
    assert (place.runner, place.offer.region) == (places.ANY_CLOUD, "us-east-1")
    cheapest = places.find("G5.xlarge").offer
    assert (cheapest.instance_type, cheapest.purchase) == ("g5.xlarge", "on-demand")
    east = places.find("aws/us-east-1/g5.xlarge").offer
    assert (east.region, east.purchase) == ("us-east-1", "on-demand")
    assert (cheapest.price.per_hour or 0) <= (east.price.per_hour or 0)
    with pytest.raises(UsageError, match=r"Did you mean 'g5\.xlarge'"):
        places.find("g5.xlrge")
    with pytest.raises(UsageError, match="Nothing names it"):
        places.find()


def test_a_replay_runs_no_command(machines: Path) -> None:
    with pytest.raises(UsageError, match="runs no command"):
        places.find("desk", "replay", machines)


def test_a_table_that_is_no_runners_is_named(tmp_path: Path) -> None:
    path = tmp_path / "machines.toml"
    path.write_text(MACHINES.replace("[offer.local]", "[offer.papr]"))
    with pytest.raises(UsageError, match=r"table \[offer.papr\].*\n?.*Did you mean 'paper'"):
        places.find("either", offers=path)


def test_a_name_that_the_catalog_lacks_leads_to_a_file_of_offers() -> None:
    with pytest.raises(UsageError, match="--offers FILE") as caught:
        places.find("gpu-box")
    assert len(str(caught.value)) < 300
