"""``underdog catalog``, and ``--as-of`` of the commands that read its snapshots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from offers_and_trials import c1_trials

from underdog.catalog import answers, archive, snapshot
from underdog.catalog.sources import Raw
from underdog.cli.group import run
from underdog.store import open_store

HEADER = "InstanceType,vCPUs,MemoryGiB,Price,Region\n"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_catalog: None) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def catalog(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run(["catalog", *args])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def recorded(folder: Path, price: float = 1.0, **failed: str) -> str:
    text = HEADER + f"m1,4,16,{price},r1\nm2,8,32,{2 * price},r1\nbroken,8,2000000,1,r1\n"
    documents: dict[str, list[Any]] = {
        "files": [{"cloud": "tiny", "text": text}],
        "failed": [{"cloud": cloud, "reason": reason} for cloud, reason in failed.items()],
    }
    raw = Raw(provider="skypilot", documents=documents, source="S", date="2026-11-30")
    answers.record(raw, folder)
    return str(folder)


def test_refresh_list_diff_and_as_of(catalog: Any, tmp_path: Path) -> None:
    status, out, err = catalog("refresh", "--replay", recorded(tmp_path / "1"))
    assert status == 0
    assert out.startswith("skypilot: 2 offers, 1 rows left out, 0 quarantined")
    assert "skypilot: rows" in err
    first = archive.load().hash
    status, out, _ = catalog("refresh", "--replay", recorded(tmp_path / "2", 1.2), "--json")
    told = json.loads(out)
    assert told["outcomes"][0]["state"] == "refreshed"
    assert told["snapshot"] == archive.load().hash != first

    status, out, _ = catalog("list")
    lines = out.splitlines()
    assert status == 0
    assert "bundled" in lines[1]
    assert first[:12] in lines[2]
    assert "in use" in lines[3]
    status, out, _ = catalog("list", "--json")
    assert [one["bundled"] for one in json.loads(out)] == [True, False, False]

    status, out, _ = catalog("diff", first[:8])
    assert status == 0
    assert "2 prices moved" in out
    assert "tiny/r1/m2/on-demand: 2 → 2.4 USD/h (+20.0%)" in out
    _, out, _ = catalog("diff", first[:8], "--over", "30%", "--json")
    assert json.loads(out)["moves"] == []
    status, out, _ = catalog("diff", "bundled")
    assert "2 new and 0 gone instance types" in out
    assert "new: tiny/m1, tiny/m2" in out

    where = ["--where", "provider = 'tiny'", "--json", "--columns", "price_per_hour"]
    for as_of, prices in ((first[:10], [1, 2]), ("2099-01-01", [1.2, 2.4]), ("bundled", [])):
        assert offers(catalog, *where, "--as-of", as_of) == prices


def offers(catalog: Any, *args: str) -> list[float]:
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert run(["offers", *args]) == 0
    return [row["price_per_hour"] for row in json.loads(text.getvalue())]


def test_the_exit_status_tells_of_failures(catalog: Any, tmp_path: Path) -> None:
    folder = tmp_path / "1"
    assert catalog("refresh", "--replay", recorded(folder))[0] == 0
    status, _, err = catalog("refresh", "--replay", recorded(folder, 1.1, other="no answer"))
    assert status == 0  # a cloud that had no offers has lost none
    (folder / "azure.json.gz").write_bytes(b"broken")
    status, out, err = catalog("refresh", "--replay", str(folder))
    assert status == 1
    assert "azure: its offers of before stay: " in err
    assert "skypilot: 2 offers" in out
    (folder / "skypilot.json.gz").write_bytes(b"broken")
    status, out, err = catalog("refresh", "--replay", str(folder))
    assert (status, out) == (2, "")
    assert archive.load().table.count() == snapshot.load().rows + 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["refresh", "--provider", "awss"], "Did you mean 'aws'?"),
        (["refresh", "--file", "/nowhere"], "no file or folder '/nowhere'"),
        (["refresh", "--replay", "/nowhere"], "does not exist"),
        (["refersh"], "Did you mean 'refresh'?"),
        (["diff", "2020-01-01"], "no snapshot of '2020-01-01' or before"),
        (["diff", "bundled", "abcdef"], "no snapshot with the hash 'abcdef'"),
        (["check", "/nowhere/x.parquet"], "Cannot read the manifest"),
    ],
)
def test_what_cannot_be_done_is_told(args: list[str], said: str, catalog: Any) -> None:
    status, out, err = catalog(*args)
    assert (status, out) == (2, "")
    assert said in err


def test_a_dry_run_asks_nobody(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERDOG_SKYPILOT_URL", "http://mirror.invalid/v8")
    status, out, err = catalog("refresh", "--dry-run", "--provider", "lambda")
    assert (status, err) == (0, "")
    assert out == "skypilot: GET http://mirror.invalid/v8/lambda/vms.csv\n"
    status, out, err = catalog("refresh", "--dry-run")
    assert status == 0
    assert {line.partition(":")[0] for line in out.splitlines()} == {
        "aws", "azure", "gcp", "skypilot"
    }  # fmt: skip
    assert "static: skipped: there is no file" in err
    assert len(archive.entries()) == 1
    _, out, _ = catalog("refresh", "--dry-run", "--json")
    assert json.loads(out)["skipped"][0]["provider"] == "static"


def test_own_prices(catalog: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[[discount]]\nwhere = \"provider = 'azure'\"\npercent = 30\n")
    status, _, _ = catalog("refresh", "--provider", "static", "--file", str(file))
    assert status == 0
    rows = archive.load().table.run(
        "SELECT count(*) FROM offers WHERE provider = 'azure' AND price_per_hour IS NOT NULL "
        "AND price_source NOT LIKE 'own price%list price%'"
    )
    assert rows.fetchone() == (0,)
    file.write_text("[[discount]]\nwhere = \"provider = 'azure'\"\npercent = 130\ncolour = 1\n")
    status, _, err = catalog("refresh", "--provider", "static", "--file", str(file))
    assert status == 2
    assert "row 1, percent: '130" in err
    assert "row 1, colour: there is no such field" in err


def test_check_lists_findings_and_what_was_left_out(catalog: Any, tmp_path: Path) -> None:
    catalog("refresh", "--replay", recorded(tmp_path))
    small = tmp_path / "small.parquet"
    whole = archive.load()
    rows = [row for row in whole.table.select() if row["provider"] == "tiny"]
    left = [one for one in whole.left_out if one["provider"] == "tiny"]
    snapshot.write(small, rows, date="2026-11-30", sources=[], left_out=left)
    status, out, err = catalog("check", str(small))
    assert (status, err.startswith("0 findings in 2 offers")) == (0, True)
    assert "tiny: its host memory of 2e+06 GiB is of no known unit" in out
    assert "broken" in out
    rows[0]["price_per_hour"] = 1e-6
    snapshot.write(small, [*rows, *rows], date="2026-11-30", sources=[], left_out=[])
    status, out, _ = catalog("check", str(small))
    assert status == 1
    assert "duplicate_offer, quarantine: " in out
    status, out, _ = catalog("check", str(small), "--json")
    assert status == 1
    assert {one["rule"] for one in json.loads(out)["findings"]} >= {"duplicate_offer"}


def test_a_decision_is_replayed_with_the_prices_of_its_day(
    catalog: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store.sqlite3")
    with open_store(store) as opened:
        opened.save(*c1_trials())
    catalog("refresh", "--replay", recorded(tmp_path / "1"))
    before = decide(capsys, store)
    catalog("refresh", "--replay", recorded(tmp_path / "2", 1.5))
    assert decide(capsys, store)["snapshot"] != before["snapshot"]
    again = decide(capsys, store, "--as-of", before["snapshot"])
    assert again["snapshot"] == before["snapshot"]
    assert again["ranking"] == before["ranking"]
    status = run(["choose", "--store", store, "--as-of", "bundled", "--offers", "x.csv"])
    assert status == 2
    assert "has no earlier days" in capsys.readouterr().err


def decide(capsys: pytest.CaptureFixture[str], store: str, *args: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["choose", "--store", store, "--json", *args]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found
