"""Which offer of a file is the machine that is to be tested."""

from __future__ import annotations

from pathlib import Path

import pytest
from watched_world import A, World, codes, decided_in

from underdog.catalog import offers_file
from underdog.errors import UsageError
from underdog.verbs import places

KIND = '[[offer]]\nprovider = "mine"\ninstance_type = "box"\n'


def found(tmp_path: Path, *offers: str, nodes: int = 1) -> places.Place | None:
    path = tmp_path / "machines.toml"
    path.write_text("\n".join(KIND + offer for offer in offers))
    return places.of_machine(("mine", "box", nodes), offers_file.entries(path))


def test_one_that_says_how_to_get_at_it_goes_before_a_cheaper_one(tmp_path: Path) -> None:
    dear = 'offer = "dear"\nprice_per_hour = 2\n[offer.ssh]\nhost = "a"\n'
    cheap = 'offer = "cheap"\nprice_per_hour = 1\n'
    place = found(tmp_path, cheap, dear)
    assert place is not None
    assert (place.name, place.runner, place.target) == ("dear", "ssh", {"host": "a"})
    assert places.says_how(place)
    place = found(tmp_path, cheap)
    assert place is not None
    assert (place.name, place.runner) == ("cheap", "skypilot")
    assert not places.says_how(place)


def test_of_several_ways_the_first_counts_and_of_several_offers_the_cheapest(
    tmp_path: Path,
) -> None:
    ways = "[offer.slurm]\n[offer.local]\nthreads = 2\n"
    offers = [f'offer = "{k}"\nprice_per_hour = {k}\n{ways}' for k in (3, 1, 2)]
    place = found(tmp_path, *offers, 'offer = "free"\n[offer.local]\n')
    assert place is not None
    assert (place.name, place.runner) == ("1", "slurm")
    assert places.says_how(place)


def test_several_machines_cost_as_many_times_as_much(tmp_path: Path) -> None:
    place = found(tmp_path, "price_per_hour = 2\n[offer.slurm]\n", nodes=4)
    assert place is not None
    assert (place.offer.nodes, place.offer.price.per_hour) == (4, 8.0)
    whole = found(tmp_path, "nodes = 4\nprice_per_hour = 7\n[offer.slurm]\n", nodes=4)
    assert whole is not None
    assert (whole.offer.nodes, whole.offer.price.per_hour) == (4, 7.0)
    assert found(tmp_path, "nodes = 4\nprice_per_hour = 7\n", nodes=2) is None


def test_what_is_reserved_or_another_machine_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, 'purchase = "reserved"\nterm = "1y"\nprice_per_hour = 1\n') is None
    path = tmp_path / "machines.toml"
    assert places.of_machine(("mine", "other", 1), offers_file.entries(path)) is None


def test_a_table_of_no_runner_is_named_and_breaks_no_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"offer\.shh"):
        found(tmp_path, "[offer.shh]\n")
    decided_in(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "machines.toml").write_text(
        '[[offer]]\nprovider = "aws"\ninstance_type = "a.large"\n[offer.shh]\nhost = "a"\n'
    )
    world = World(tmp_path)
    world.catalog(A)
    judged = world.judged(
        oldest_seconds=1.0,
        act=True,
        budget=1.0,
        dry_run=True,
        offers=str(tmp_path / "machines.toml"),
    )
    assert codes(judged)["old_measurement"] == "open"
    (test,) = judged.tests
    assert (test.offers, test.runner) == (None, None)
