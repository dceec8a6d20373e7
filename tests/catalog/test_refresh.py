"""A refresh: new offers in, the rest as it was, and the last good ones where a provider fails."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from underdog.catalog import answers, archive
from underdog.catalog import refresh as work
from underdog.catalog.http import Http
from underdog.catalog.refresh import Outcome, Refreshed, Request
from underdog.catalog.sources import FetchOptions, Raw
from underdog.core.columns import BY_NAME
from underdog.core.expression import parse
from underdog.errors import CatalogError, MissingPackageError, NotSetUpError, UsageError
from underdog.verbs import catalog as verb

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEADER = "InstanceType,vCPUs,MemoryGiB,Price,Region\n"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_catalog: None) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def rows(count: int = 3, price: float = 1.0, region: str = "r1") -> str:
    """Lines of machines that cost in proportion to their size."""
    return "".join(f"m{n},{n},{4 * n},{price * n:g},{region}\n" for n in range(1, count + 1))


def recorded(folder: Path, **clouds: str) -> Path:
    """A folder with the recorded answer of SkyPilot's catalog."""
    files = [{"cloud": cloud, "text": HEADER + text} for cloud, text in clouds.items()]
    documents: dict[str, list[Any]] = {"files": files}
    raw = Raw(provider="skypilot", documents=documents, source="S", date="2026-11-30")
    answers.record(raw, folder)
    return folder


def refresh(replay: Path | None, *providers: str, **options: Any) -> Refreshed:
    request = Request(providers=providers, options=FetchOptions(now=NOW, **options), replay=replay)
    return work.refresh(request, Http())


def outcome(found: Refreshed, provider: str = "skypilot") -> Outcome:
    return next(one for one in found.outcomes if one.provider == provider)


def offers(where: str) -> list[dict[str, Any]]:
    return archive.load().table.select(parse(where, BY_NAME))


def test_new_offers_join_those_that_were_there(tmp_path: Path) -> None:
    before = archive.load()
    found = refresh(recorded(tmp_path, lambda_=rows(), vast=rows(2)))
    assert outcome(found).offers == 5
    after = archive.load()
    assert found.entry is not None
    assert (after.hash, after.rows) == (found.entry.hash, before.rows + 5)
    assert [row["price_per_hour"] for row in offers("provider = 'vast'")] == [1, 2]
    assert after.date == "2026-11-30"
    sources = {one["provider"]: one for one in after.sources}
    assert sources["vast"] == {
        "provider": "vast", "prices": "S", "date": "2026-11-30", "asked": "skypilot"
    }  # fmt: skip
    assert {"aws", "azure", "gcp"} < sources.keys()


def test_only_what_was_answered_is_replaced(tmp_path: Path) -> None:
    refresh(recorded(tmp_path / "1", lambda_=rows(), vast=rows(2)))
    refresh(recorded(tmp_path / "2", vast=rows(1, price=1.2)))
    assert [row["price_per_hour"] for row in offers("provider = 'vast'")] == [1.2]
    assert len(offers("provider = 'lambda_'")) == 3
    assert len(archive.entries()) == 3


def test_only_the_regions_that_were_asked_for_are_replaced(tmp_path: Path) -> None:
    both = rows(2, region="r1") + rows(2, region="r2")
    refresh(recorded(tmp_path / "1", vast=both))
    later = rows(9, price=5, region="r1") + rows(1, price=1.3, region="r2")
    refresh(recorded(tmp_path / "2", vast=later), regions=("r2",))
    found = [(row["region"], row["price_per_hour"]) for row in offers("provider = 'vast'")]
    assert found == [("r1", 1), ("r1", 2), ("r2", 1.3)]


def test_a_region_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = outcome(refresh(recorded(tmp_path, vast=rows()), regions=("r11",)))
    assert (found.state, found.reason) == ("kept", "It has no offer in 'r11'.")
    assert found.hint == "Did you mean 'r1'?"


def test_a_cloud_that_falls_silent_keeps_its_offers(tmp_path: Path) -> None:
    refresh(recorded(tmp_path / "1", lambda_=rows(), vast=rows(2)))
    raw = answers.replay(answers.Asked("skypilot"), recorded(tmp_path / "2", vast=rows(1)))
    assert isinstance(raw, Raw)
    raw.documents["failed"] = [
        {"cloud": "lambda_", "reason": "no answer"},
        {"cloud": "never-there", "reason": "404"},
    ]
    answers.record(raw, tmp_path / "2")
    found = refresh(tmp_path / "2")
    kept = [one for one in found.outcomes if one.state == "kept"]
    assert [(one.provider, one.reason) for one in kept] == [("lambda_", "no answer")]
    assert len(offers("provider = 'lambda_'")) == 3


@pytest.mark.parametrize("content", [b"", b"no gzip", b"\x1f\x8b\x08", b'{"provider": 1}'])
def test_an_answer_that_cannot_be_read_changes_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "skypilot.json.gz").write_bytes(content)
    found = refresh(tmp_path)
    assert (outcome(found).state, found.entry) == ("kept", None)
    assert len(archive.entries()) == 1


def test_an_answer_without_offers_is_a_failure(tmp_path: Path) -> None:
    refresh(recorded(tmp_path / "1", vast=rows()))
    found = refresh(recorded(tmp_path / "2", vast=""))
    assert (outcome(found).state, found.entry) == ("kept", None)
    assert "holds no offer: its file is empty" in str(outcome(found).reason)
    assert len(offers("provider = 'vast'")) == 3


def test_an_answer_that_the_rules_reject_is_not_taken(tmp_path: Path) -> None:
    refresh(recorded(tmp_path / "1", lambda_=rows(), vast=rows(100)))
    found = refresh(recorded(tmp_path / "2", lambda_=rows(2), vast=rows(100, price=20)))
    kept = outcome(found, "vast")
    assert kept.state == "kept"
    assert "prices" in str(kept.reason)
    assert offers("provider = 'vast' and instance_type = 'm1'")[0]["price_per_hour"] == 1
    assert len(offers("provider = 'lambda_'")) == 2


def test_an_answer_that_the_rules_reject_is_taken_where_that_is_asked_for(tmp_path: Path) -> None:
    refresh(recorded(tmp_path / "1", vast=rows(100)))
    dearer = recorded(tmp_path / "2", vast=rows(100, price=20))
    assert "--accept vast" in str(outcome(refresh(dearer), "vast").hint)
    with pytest.raises(UsageError, match="Did you mean 'vast'"):
        refresh(dearer, accept=("vasst",))
    found = refresh(dearer, accept=("vast",))
    assert outcome(found).state == "refreshed"
    assert offers("provider = 'vast' and instance_type = 'm1'")[0]["price_per_hour"] == 20


def test_what_the_rules_take_out_or_doubt_is_told(tmp_path: Path) -> None:
    cheap = "m99,99,396,0.001,r1\n"
    twice = "m3,3,12,2.5,r1\n"
    found = refresh(recorded(tmp_path, vast=rows(20) + cheap + twice))
    assert outcome(found).quarantined == 1
    assert outcome(found).doubted >= 1
    assert not offers("provider = 'vast' and instance_type = 'm99'")
    assert "two_prices" in offers("provider = 'vast' and instance_type = 'm3'")[0]["caveats"]
    reasons = {
        name: one["reason"]
        for one in archive.load().left_out
        if one["provider"] == "vast"
        for name in one["names"]
    }
    assert reasons["m99"].startswith("family_price_too_low: ")
    assert "two on-demand prices" in reasons["m3"]


OWN = """
[[discount]]
where = "provider = 'vast'"
percent = 50
[[machine]]
instance_type = "box"
vcpus = 8
purchase_price = 8760
life_years = 1
utilisation = 1
"""


def test_own_prices_stay_over_every_refresh_until_they_go(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN)
    refresh(recorded(tmp_path / "1", vast=rows(1), lambda_=rows(1)))
    refresh(None, "static", file=file)
    assert offers("instance_type = 'box'")[0]["price_per_hour"] == 1
    assert offers("provider = 'vast'")[0]["price_per_hour"] == 0.5
    file.unlink()
    refresh(recorded(tmp_path / "2", vast=rows(1, price=1.5)))
    (row,) = offers("provider = 'vast'")
    assert row["price_per_hour"] == 0.75
    assert "list price 1.5 USD/h of S, vast, 2026-11-30" in row["price_source"]
    assert "price_moved" not in (row["caveats"] or "")
    request = Request(options=FetchOptions(now=NOW))
    _, skipped = work.chosen(request)
    assert [one.provider for one in skipped] == ["static"]
    with archive.locked():  # what a refresh of all providers does without a file
        merge = work._Merge(archive.load(), [], request.options, True)
        merge.result([])
    assert offers("provider = 'vast'")[0]["price_per_hour"] == 1.5
    assert not offers("instance_type = 'box'")


def test_own_prices_with_faults_leave_those_of_before(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN)
    refresh(None, "static", file=file)
    file.write_text(OWN + "colour = 1\n")
    found = refresh(None, "static", file=file)
    assert outcome(found, "static").state == "kept"
    assert "colour" in str(outcome(found, "static").reason)
    assert offers("instance_type = 'box'")


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [('"box"', '"b\\u202eox"', "markup"), ("vcpus = 8", "vcpus = 1e9", "vcpus is 1e+09")],
)
def test_own_offers_that_cannot_be_are_not_taken(
    right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWN.replace(right, wrong))
    found = refresh(None, "static", file=file)
    assert outcome(found, "static").state == "kept"
    assert said in str(outcome(found, "static").reason)


def test_how_many_offers_have_a_price_of_ones_own_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    refresh(recorded(tmp_path / "1", vast=rows(3)))
    wrong = "[[discount]]\nname = 'vats'\nwhere = \"provider = 'vats'\"\npercent = 5\n"
    file.write_text(OWN + wrong)
    told = outcome(refresh(None, "static", file=file), "static")
    assert (told.state, told.offers) == ("refreshed", 4)
    assert told.reason == "'vats' fits no offer: provider = 'vats'"
    file.write_text(OWN)  # what the first discount fits is not idle for the prices that it made
    assert outcome(refresh(None, "static", file=file), "static").reason is None


def test_a_check_judges_the_list_and_not_what_one_pays(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    refresh(recorded(tmp_path / "1", vast=rows(5)))
    mine = "[[offer]]\nprovider = 'vast'\nregion = 'r1'\ninstance_type = 'm5'\n"
    file.write_text(mine + "price_per_hour = 0.001\n")
    refresh(None, "static", file=file)
    assert [one for one in verb.check().findings if one.severity != "caveat"] == []


def test_what_was_recorded_gives_the_same_snapshot(tmp_path: Path) -> None:
    first = refresh(recorded(tmp_path, vast=rows()))
    second = refresh(tmp_path)
    assert first.entry is not None
    assert second.entry is not None
    assert first.entry.hash == second.entry.hash


REFRESH = """
import sys
from pathlib import Path
from underdog.verbs.catalog import refresh
assert refresh(replay=Path(sys.argv[1])).entry is not None
"""


@pytest.mark.slow
def test_two_at_once_do_not_lose_each_others_offers(tmp_path: Path) -> None:
    folders = [recorded(tmp_path / name, **{name: rows()}) for name in ("one", "two")]
    children = [subprocess.Popen([sys.executable, "-c", REFRESH, folder]) for folder in folders]
    assert [child.wait(60) for child in children] == [0, 0]
    assert len(offers("provider in ('one', 'two')")) == 6


def test_names_of_providers() -> None:
    with pytest.raises(UsageError, match=r"no 'lamda'.*\nDid you mean 'lambda'"):
        answers.asked(("lamda",))
    assert answers.asked(("aws", "lambda", "skypilot:vast", "aws")) == [
        answers.Asked("aws"),
        answers.Asked("skypilot", ("lambda", "vast")),
    ]
    with pytest.raises(UsageError, match=r"no 'awss'.*\nDid you mean 'aws'[^§]*no 'gpc'"):
        answers.asked(("awss", "gpc"))


def test_a_folder_is_skypilots_and_a_file_is_of_own_prices(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").touch()
    for name, file, kept in [
        ("skypilot", tmp_path, True),
        ("static", tmp_path, False),
        ("static", tmp_path / "mine.toml", True),
        ("skypilot", tmp_path / "mine.toml", False),
    ]:
        options = answers.options_for(answers.Asked(name), FetchOptions(file=file))
        assert (options.file is not None) == kept
    with pytest.raises(UsageError, match="no file or folder"):
        work.chosen(Request(options=FetchOptions(file=tmp_path / "none")))


def test_a_folder_without_recordings_is_told(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"no recorded answers.*\n.*--record"):
        refresh(tmp_path)
    found = refresh(tmp_path, "skypilot")
    assert "Cannot replay" in str(outcome(found).reason)


@pytest.mark.parametrize(
    "error", [MissingPackageError("AWS", "boto3", "aws"), NotSetUpError("no login", "log in")]
)
def test_a_provider_that_is_not_set_up_is_skipped_unless_asked_for(
    error: CatalogError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(http: Http, options: FetchOptions) -> Raw:
        raise error

    monkeypatch.setattr(answers, "module", lambda name: SimpleNamespace(fetch=fetch))
    by_default = refresh(None)
    assert {one.state for one in by_default.outcomes} == {"skipped"}
    asked = outcome(refresh(None, "aws"), "aws")
    assert (asked.state, asked.hint) == ("kept", error.hint)


def test_what_is_asked_is_told() -> None:
    options = FetchOptions(only=())
    assert answers.asks(answers.Asked("skypilot", ("lambda",)), options)[0].endswith(
        "/lambda/vms.csv"
    )
    assert answers.asks(answers.Asked("azure"), options)


def test_progress_says_of_whom(tmp_path: Path) -> None:
    told: list[str] = []
    refresh(recorded(tmp_path, vast=rows()), progress=lambda what, done, total: told.append(what))
    assert told == ["skypilot: rows", "quality rules"]
