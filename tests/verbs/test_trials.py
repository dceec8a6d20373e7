"""Trials of the store: brought in whole or not at all, once, and handed out again."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import underdog
from underdog.errors import StoreError, TrialsError, UsageError
from underdog.model import Estimate, Measurement, Trial
from underdog.store import open_store
from underdog.store.owner import current_owner
from underdog.testing.store import bare_trial, full_timeline, full_trial
from underdog.verbs.trials import export_trials, trial

SEARCH = Path(__file__).parents[2] / "../shared/data/search"

TRIALS = """\
workload,group,offer,throughput
a,g,aws/x.large,10
a,g,aws/y.large,
b,g,aws/x.large,20.5
"""
OFFERS = """\
offer,provider,region,instance_type,price_per_hour,vcpus,disk
aws/x.large,aws,us-east-1,x.large,0.5,2,ssd
aws/y.large,aws,us-east-1,y.large,,4,ssd
"""


class Files:
    """A folder with files, and a store beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = str(folder / "store.sqlite3")

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def trials(self, **filters: Any) -> list[Trial]:
        return underdog.trials(self.store, **filters)

    def refused(self, path: Path, offers: Path | None = None) -> str:
        """The message of an import that must fail, and must leave the store as it was."""
        before = self.trials()
        with pytest.raises(TrialsError) as raised:
            underdog.import_trials(path, offers, self.store)
        assert self.trials() == before
        return str(raised.value)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def rate(trial: Trial) -> float | None:
    measured = trial.measurement and trial.measurement.samples_per_second
    return measured.value if measured else None


def test_trials_and_their_offers(files: Files) -> None:
    path, offers = files.write("t.csv", TRIALS), files.write("o.csv", OFFERS)
    summary = underdog.import_trials(path, offers, files.store)
    assert (summary.added, summary.updated, summary.unchanged, summary.failed) == (3, 0, 0, 1)
    assert summary.price_unknown == 1
    found = files.trials()
    assert [(t.workload, t.status, rate(t), t.price.per_hour) for t in found] == [
        ("a", "ok", 10, 0.5),
        ("a", "failed", None, None),
        ("b", "ok", 20.5, 0.5),
    ]
    assert [t.workload for t in files.trials(workload="b")] == ["b"]
    assert [t.status for t in files.trials(status="failed")] == ["failed"]
    assert files.trials(limit=1) == found[2:]
    assert trial(found[0].id, files.store) == found[0]


def test_the_same_file_again_adds_nothing(files: Files) -> None:
    path, offers = files.write("t.csv", TRIALS), files.write("o.csv", OFFERS)
    underdog.import_trials(path, offers, files.store)
    before = files.trials()
    again = underdog.import_trials(path, offers, files.store)
    assert (again.added, again.updated, again.unchanged) == (0, 0, 3)
    without = underdog.import_trials(path, None, files.store)
    assert without.added == 0
    assert files.trials()[0] == before[0], "the price of then is not taken away"
    assert len(files.trials()) == 3


def test_facts_that_come_later_are_added(files: Files) -> None:
    path, offers = files.write("t.csv", TRIALS), files.write("o.csv", OFFERS)
    underdog.import_trials(path, None, files.store)
    assert [t.price.per_hour for t in files.trials()] == [None] * 3
    later = underdog.import_trials(path, offers, files.store)
    assert (later.added, later.updated) == (0, 3)
    assert [t.price.per_hour for t in files.trials()] == [0.5, None, 0.5]


def test_offers_in_the_rows_themselves(files: Files) -> None:
    path = files.write(
        "t.csv",
        "workload,offer,throughput,provider,region,instance_type,price_per_hour\n"
        "a,o,10,aws,eu,x.large,2\na,o,10.1,aws,eu,x.large,2\na,p,9,aws,eu,y.large,1\n",
    )
    underdog.import_trials(path, store=files.store)
    assert [(t.offer.id, t.price.per_hour) for t in files.trials() if t.offer] == [
        ("aws/eu/x.large/on-demand", 2),
        ("aws/eu/y.large/on-demand", 1),
    ]


def test_gzip_json_and_byte_order_marks(files: Files) -> None:
    rows = [{"workload": "a", "offer": "o", "throughput": 10.0, "other": [1]}]
    expected = None
    for name, content in {
        "t.csv": b"workload,offer,throughput\na,o,10.0\n",
        "t.csv.gz": gzip.compress(b"workload,offer,throughput\na,o,10.0\n"),
        "wrong-ending.txt": gzip.compress(b"offer,throughput,workload\r\no,10.0,a\r\n"),
        "bom.csv": b"\xef\xbb\xbfworkload,offer,throughput\na,o,10.0\n\n",
        "t.json": json.dumps(rows).encode(),
        "one.json": json.dumps(rows[0]).encode(),
        "bom.json.gz": gzip.compress(b"\xef\xbb\xbf" + json.dumps(rows).encode()),
    }.items():
        store = str(files.folder / f"{name}.sqlite3")
        underdog.import_trials(files.write(name, content), store=store)
        (found,) = underdog.trials(store)
        expected = expected or found.id
        assert (found.id, rate(found)) == (expected, 10.0), name


def test_trials_as_measure_prints_them(files: Files) -> None:
    ours = full_trial("w")
    running = bare_trial("w", status="running", owner=current_owner())
    odd = bare_trial("w\x00\udcff", command=["\udcff"])
    path = files.write("t.json", json.dumps(msgspec.to_builtins([ours, running, odd])))
    summary = underdog.import_trials(path, store=files.store)
    assert summary.added == 3
    found = files.trials()
    assert [found[0], found[2]] == [ours, odd]
    assert found[1].status == "interrupted"
    assert underdog.import_trials(path, store=files.store).unchanged == 3
    single = files.write("one.json", msgspec.json.encode(full_trial("v")))
    assert underdog.import_trials(single, store=files.store).added == 1


def test_faulty_trials_of_measure_are_told(files: Files) -> None:
    good = msgspec.to_builtins(bare_trial("w"))
    negative = bare_trial(
        "w",
        measurement=Measurement(samples_per_second=Estimate(value=-1.0, low=0, high=1, n=3)),
    )
    rows = [
        good,
        good,
        good | {"id": "b", "status": "fine"},
        good | {"id": "c", "price": {"per_hour": -2}},
        msgspec.to_builtins(negative),
        "text",
    ]
    message = files.refused(files.write("t.json", json.dumps(rows)))
    for told in (
        "row 2, id: ",
        "row 3, trial: Invalid enum value 'fine'",
        "row 4, trial: a price must be positive",
        "row 5, measurement.samples_per_second.value: '-1.0'",
        "row 6, row: it is no object",
    ):
        assert told in message


HEAD = "workload,offer,throughput\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        (HEAD, "the file has no trial"),
        ("[]", "the file has no trial"),
        ("workload,offer,thruput\na,o,1\n", "no column 'throughput'.\nDid you mean 'thruput'?"),
        ("a,b\n1,2\n", "no column 'offer'"),
        ("workload,offer,throughput,offer\na,o,1,o\n", "the column 'offer' twice"),
        (HEAD + "a,o\n", "row 2, row: 2 fields where the header names 3"),
        (HEAD + "a,o,1,2\n", "row 2, row: 4 fields where the header names 3"),
        (HEAD + 'a,"o,1\n', "no CSV file that can be read"),
        (HEAD + "a,o,-1\n", "row 2, throughput: '-1' is not a positive"),
        (HEAD + "a,o,0\n", "row 2, throughput: 0 is not a value"),
        (HEAD + "a,o,nan\n", "row 2, throughput: 'nan'"),
        (HEAD + ",o,1\n", "row 2, workload: it is empty"),
        (HEAD + "a,,1\n", "row 2, offer: it is empty"),
        (HEAD.encode() + b"a,caf\xe9,1\n", "Line 2 is not UTF-8: byte 0xe9"),
        (HEAD.encode("utf-16"), "is not UTF-8"),
        (gzip.compress((HEAD + "a,o,1\n" * 999).encode(), mtime=0)[:40], "damaged or cut short"),
        (b"\x1f\x8bgarbage of a kind", "damaged or cut short"),
        ("[{", "is not JSON"),
        ('[{"workload": "a", "offer": "o"}]', "row 1, throughput: it is missing"),
        ('[{"workload": "a", "offer": "o", "throughput": NaN}]', "row 1, throughput: 'nan'"),
        ('[{"workload": 1, "offer": {}, "throughput": "x"}]', "row 1, offer: '{}' is not text"),
        ("[" * 100_000, "is not JSON"),
        (os.urandom(5000).replace(b"\x1f", b"-").replace(b"[", b"-"), ""),
    ],
)
def test_what_cannot_be_imported_is_told_and_changes_nothing(
    content: str | bytes, told: str, files: Files
) -> None:
    underdog.import_trials(files.write("good.csv", TRIALS), None, files.store)
    message = files.refused(files.write("t.csv", content))
    assert told in message
    assert "t.csv" in message or "Line" in message


def test_one_bad_row_at_the_end_keeps_all_out(files: Files) -> None:
    good = "".join(f"w,o{i},1\n" for i in range(3000))
    assert "row 3002, throughput" in files.refused(files.write("t.csv", HEAD + good + "w,o,-1\n"))


def test_an_offer_that_is_missing_and_a_bad_price_are_told_together(files: Files) -> None:
    trials = files.write("t.csv", TRIALS + "a,g,aws/z.large,1\n")
    offers = files.write("o.csv", OFFERS.replace("0.5", "-0.5"))
    message = files.refused(trials, offers)
    assert "'o.csv' cannot be imported:\n  row 2, price_per_hour: '-0.5'" in message
    assert "'t.csv' cannot be imported:\n  row 5, offer: 'aws/z.large' is not in" in message
    assert "Nothing was imported." in message


@pytest.mark.parametrize("which", ["trials", "offers"])
def test_files_that_are_not_there(which: str, files: Files) -> None:
    trials, absent = files.write("t.csv", TRIALS), files.folder / "absent.csv"
    message = files.refused(absent) if which == "trials" else files.refused(trials, absent)
    assert "absent.csv' cannot be read: No such file" in message
    assert "Is a directory" in files.refused(files.folder)


def test_a_store_that_cannot_be_written_says_so(files: Files) -> None:
    path = files.write("t.csv", TRIALS)
    with pytest.raises(StoreError):
        underdog.import_trials(path, store=str(files.folder))


def test_one_workload_of_a_file(files: Files) -> None:
    path = files.write("t.csv", TRIALS)
    underdog.import_trials(path, store=files.store, workload="b")
    assert [t.workload for t in files.trials()] == ["b"]
    nameless = files.write("n.csv", "offer,throughput\no,1\n")
    underdog.import_trials(nameless, store=files.store, workload="mine")
    assert [t.workload for t in files.trials()] == ["b", "mine"]
    with pytest.raises(TrialsError, match="no trial of the workload 'c'"):
        underdog.import_trials(path, store=files.store, workload="c")


def test_an_unknown_id_names_the_nearest(files: Files) -> None:
    with open_store(files.store) as store:
        store.save(bare_trial("w", id="t-2026-abc"))
    with pytest.raises(UsageError, match="Did you mean 't-2026-abc'"):
        trial("t-2026-abd", files.store)


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_what_is_exported_can_be_imported(ending: str, files: Files) -> None:
    path, offers = files.write("t.csv", TRIALS), files.write("o.csv", OFFERS)
    underdog.import_trials(path, offers, files.store)
    with open_store(files.store) as store:
        told = replace(full_trial("w"), timeline=full_timeline())
        store.save(told, bare_trial("v", status="hung", reason="…, \n\udcff|"))
    exported = files.folder / f"out.{ending}"
    assert export_trials(exported, files.store) == 5
    before = files.trials()
    again = underdog.import_trials(exported, store=files.store)
    assert (again.added, again.updated, again.unchanged) == (0, 0, 5)
    assert files.trials() == before  # a line holds less than its trial, and takes nothing away
    other = str(files.folder / "other.sqlite3")
    assert underdog.import_trials(exported, store=other).added == 5
    ours, theirs = files.trials(), underdog.trials(other)
    if ending == "json":
        assert theirs == ours
        assert trial(told.id, other) == told, "its timeline goes along"
    for one, two in zip(ours, theirs, strict=True):
        assert (one.workload, one.status, rate(one)) == (two.workload, two.status, rate(two))
        assert one.price.per_hour == two.price.per_hour
        assert one.knobs == two.knobs
        if one.offer and two.offer:
            assert one.offer.id == two.offer.id
    assert theirs[3].measurement is not None
    assert theirs[3].measurement.samples_per_second == ours[3].measurement.samples_per_second  # type: ignore[union-attr]


def test_an_export_of_another_ending_is_refused(files: Files) -> None:
    with pytest.raises(UsageError, match=r"tells no format; these do: \.csv, \.json"):
        export_trials(files.folder / "out.xlsx", files.store)
    with pytest.raises(UsageError, match="cannot be written"):
        export_trials(files.folder / "absent" / "out.csv", files.store)
    assert not list(files.folder.glob(".out*"))


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode), head=st.booleans())
def test_no_file_brings_it_down(content: bytes, head: bool, files: Files) -> None:
    path = files.write("t.csv", HEAD.encode() + content if head else content)
    with contextlib.suppress(TrialsError):
        underdog.import_trials(path, store=files.store)


@pytest.mark.parametrize(("name", "count", "failed"), [("scout", 1104, 73), ("cherrypick", 171, 0)])
def test_published_searches(name: str, count: int, failed: int, files: Files) -> None:
    folder = SEARCH / name
    if not folder.exists():
        pytest.skip("no published trials: there is no folder 'shared' beside the checkout")
    trials, offers = folder / "trials.csv.gz", folder / "offers.csv.gz"
    summary = underdog.import_trials(trials, offers, files.store)
    assert (summary.added, summary.failed, summary.price_unknown) == (count, failed, 0)
    found = files.trials()
    kinds = {(t.offer.id if t.offer else "", tuple(t.knobs.items()), t.workload) for t in found}
    assert len(kinds) == count, "offers that differ stay apart"
    workloads = [w for w, _ in itertools.groupby(t.workload for t in found)]
    assert len(workloads) == len(set(workloads))


@pytest.mark.slow
def test_the_published_trials_of_three_clouds(files: Files) -> None:
    folder = SEARCH / "llm_three_clouds"
    if not folder.exists():
        pytest.skip("no published trials: there is no folder 'shared' beside the checkout")
    trials, offers = folder / "trials.csv.gz", folder / "offers.csv.gz"
    summary = underdog.import_trials(trials, offers, files.store)
    assert (summary.added, summary.failed, summary.price_unknown) == (53_121, 0, 0)
    assert "accelerator_unused" not in summary.caveats
    one = files.trials(workload="gemma-2b/generate-16")
    parts = {t.offer.instance_type: t.offer.accelerator_count for t in one if t.offer}
    assert parts["g6f.4xlarge"] == 0.5
    again = underdog.import_trials(trials, offers, files.store)
    assert (again.added, again.updated, again.unchanged) == (0, 0, 53_121)


def test_a_failed_trial_with_a_rate_is_exported_as_failed(files: Files) -> None:
    ended = full_trial("w")
    with open_store(files.store) as store:
        store.save(replace(ended, id="a", status="failed", reason="it broke", exit_code=1))
    exported = files.folder / "out.csv"
    export_trials(exported, files.store)
    other = str(files.folder / "other.sqlite3")
    assert underdog.import_trials(exported, store=other).failed == 1
    (kept,) = underdog.trials(other)
    assert (kept.status, kept.reason) == ("failed", "it broke")
