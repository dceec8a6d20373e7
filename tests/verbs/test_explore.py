"""Exploring end to end, over recorded trials and on this machine."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_trials import offers, value, write

from underdog.core.exploration import Ended, Event, Exploration, Started
from underdog.errors import StoreError, TrialsError, UsageError
from underdog.model import Trial
from underdog.store import open_store
from underdog.verbs.explore import explore, plan
from underdog.verbs.studies import read
from underdog.verbs.viewing import decision_view

BEST = {w: max(value(w, o) for o in offers()) for w in ("gpt-large", "resnet", "tabular")}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDERDOG_STORE", str(tmp_path / "store.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def replayed(folder: Path, workload: str = "resnet", **more: Any) -> Exploration:
    trials, listed = folder / "trials.csv", folder / "offers.csv"
    if not trials.exists():
        write(folder)
    given = {"runner": "replay", "trials": str(trials), "offers": str(listed), **more}
    return explore(workload=workload, **given)


def told(found: Exploration) -> list[tuple[str, str, float | None]]:
    return [
        (test.offer, test.status, test.rate.value if test.rate else None) for test in found.tests
    ]


@pytest.mark.parametrize("workload", sorted(BEST))
def test_the_best_is_found_before_all_is_tested(home: Path, workload: str) -> None:
    found = replayed(home, workload, max_trials=12)
    assert found.candidates == 24
    assert found.best_utility is not None
    assert found.best_utility >= 0.9 * BEST[workload]
    assert len(found.tests) <= 12


def test_a_replay_says_what_the_file_says_and_costs_what_it_would(home: Path) -> None:
    found = replayed(home, max_trials=5)
    by_name = {offer["offer"]: offer for offer in offers()}
    for test in found.tests:
        offer = by_name[test.offer]
        known = value("resnet", offer)
        assert (test.utility or 0.0) == pytest.approx(known)
        assert test.dollars == pytest.approx(float(str(offer["price_per_hour"])) * 120 / 3600)
    assert found.spent == pytest.approx(sum(test.dollars or 0 for test in found.tests))
    assert found.ended == "trials" or len(found.tests) < 5
    assert found.decision is not None
    assert found.decision.best_measured is not None
    assert len(found.decision.ledger) == 24


def test_a_replay_leaves_no_trace_without_a_store(home: Path) -> None:
    found = replayed(home, max_trials=3)
    assert not found.kept
    assert not (home / "store.sqlite3").exists()
    assert not (home / "data").exists()


def test_the_decision_at_its_end_can_be_asked_again(home: Path) -> None:
    url = str(home / "kept.sqlite3")
    found = replayed(home, max_trials=4, store=url, by="samples_per_second / price_per_hour")
    with open_store(url) as store:
        (decision,) = store.decisions()
        view = decision_view(store, decision)
    assert decision.study == found.study
    assert view.whole
    assert len(view.ledger) == 24
    assert found.decision is not None
    best = [line.offer for line in view.ledger if line.verdict == "best"]
    assert best == [found.decision.best_measured]


def test_the_same_seed_gives_the_same_search(home: Path) -> None:
    once, again = (replayed(home, max_trials=4, seed=3) for _ in range(2))
    assert told(once) == told(again)
    assert once.study == again.study
    assert replayed(home, max_trials=1, seed=4).study != once.study


def test_a_search_goes_on_where_it_stopped(home: Path) -> None:
    whole = replayed(home, max_trials=5)
    url = str(home / "kept.sqlite3")
    first = replayed(home, max_trials=2, store=url)
    second = replayed(home, max_trials=5, store=url)
    assert first.kept
    assert told(first) == told(whole)[:2]
    assert told(second) == told(whole)
    assert second.spent == pytest.approx(whole.spent)
    third = replayed(home, max_trials=5, store=url)
    assert told(third) == told(whole)
    with open_store(url) as store:
        assert len(store.trials(workload="resnet")) == len(whole.tests)


def test_what_a_killed_process_left_in_flight_is_paid_for_and_tested_again(home: Path) -> None:
    url = str(home / "kept.sqlite3")
    first = replayed(home, max_trials=3, store=url)
    with open_store(url) as store:
        last = store.trials(workload="resnet")[-1]
        gone = {"host": os.uname().nodename, "pid": 2**22 + 1, "boot_id": "an earlier one"}
        store.save(
            dataclasses.replace(last, id="x", status="running", measurement=None, owner=gone)
        )
    again = replayed(home, max_trials=4, store=url)
    assert told(again)[:3] == told(first)
    assert len(again.tests) == 4
    paid = sum(test.dollars or 0 for test in again.tests)
    assert again.spent == pytest.approx(paid + (last.dollars or 0))


def test_a_budget_is_kept(home: Path) -> None:
    dearest = max(float(str(offer["price_per_hour"])) for offer in offers()) * 120 / 3600
    for budget in (0.004, 0.02, 0.2):
        found = replayed(home, budget=budget, max_trials=24)
        assert found.spent <= budget
        if found.ended == "budget":
            assert found.spent > budget - dearest - 1e-9


def test_a_deadline_counts_the_time_that_tests_would_take(home: Path) -> None:
    found = replayed(home, deadline=4 * 60, max_trials=24)
    assert (found.ended, len(found.tests)) == ("deadline", 2)
    wide = replayed(home, deadline=4 * 60, max_trials=24, parallel=2)
    assert len(wide.tests) > len(found.tests)


def test_several_at_once_are_different_and_told_in_order(home: Path) -> None:
    events: list[Event] = []
    found = replayed(home, max_trials=9, parallel=3, tell=events.append)
    assert len({test.offer for test in found.tests}) == len(found.tests)
    running, most = 0, 0
    for event in events:
        running += isinstance(event, Started) - isinstance(event, Ended)
        most = max(most, running)
    assert most == 3
    assert sorted(test.number for test in found.tests) == list(range(1, len(found.tests) + 1))


def test_only_what_satisfies_the_condition_is_tested(home: Path) -> None:
    found = replayed(home, where="accelerator_count = 0 and vcpus < 20", max_trials=24)
    assert found.candidates == 12
    assert all("g4dn" not in test.offer for test in found.tests)


def test_the_workloads_of_the_own_group_are_no_knowledge(home: Path) -> None:
    found = replayed(home, "gpt-large", max_trials=4)
    assert "gpt-small" not in found.references
    assert "gpt-large" not in found.references


def test_where_nothing_works_the_answer_is_no(home: Path) -> None:
    trials, listed = write(home)
    lines = ["workload,offer,throughput,status"]
    lines += [f"doomed,{offer['offer']},,failed" for offer in offers()]
    trials.write_text("\n".join(lines))
    found = explore(
        runner="replay", trials=str(trials), offers=str(listed), workload="doomed", max_trials=50
    )
    assert found.best is None
    assert found.expected_loss == 1.0
    assert {test.status for test in found.tests} <= {"failed"}


def test_a_file_of_own_trials_is_enough(home: Path) -> None:
    """What ``trials export`` writes says of its offers what they are."""
    (home / "t.csv").write_text(
        "workload,offer,throughput,provider,instance_type,price_per_hour,knob.batch\n"
        "w,a/b/c5.large/spot,10,a,c5.large,0.5,8\n"
        "w,a/b/c5.large/spot,20,a,c5.large,0.5,16\n"
        "w,a/b/c5.xlarge/spot,30,a,c5.xlarge,1.0,8\n"
    )
    found = explore(runner="replay", trials="t.csv")
    assert found.candidates == 2
    assert (found.best, dict(found.best_knobs)) == ("a/b/c5.large/spot", {"batch": "16"})


def test_knobs_of_recorded_trials_are_searched(home: Path) -> None:
    named = "workload,offer,throughput,status,provider,instance_type,price_per_hour"
    rows = [f"{named},memory_gib,knob.batch"]
    for name, price, fits in (("small", 0.5, 16), ("large", 1.0, 32)):
        for batch in (8, 16, 32):
            rate, status = (batch * 2 * price, "") if batch <= fits else ("", "out_of_memory")
            rows.append(f"w,{name},{rate},{status},a,{name},{price},{fits},{batch}")
    (home / "t.csv").write_text("\n".join(rows))
    (home / "study.toml").write_text(
        '[runner]\nname = "replay"\ntrials = "t.csv"\n[knobs]\nbatch = [8, 16, 32]\n'
    )
    found = explore("study.toml")
    assert (found.best, dict(found.best_knobs)) == ("large", {"batch": "32"})
    tried = [(test.offer, test.knobs["batch"]) for test in found.tests]
    assert ("small", "32") in tried
    assert len(tried) == len(set(tried))


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"workload": "resnte"}, UsageError, "Did you mean 'resnet'"),
        ({"workload": None}, UsageError, "4 workloads"),
        ({"budget": 0.0}, UsageError, "not a positive finite number"),
        ({"budget": float("nan")}, UsageError, "not a positive finite number"),
        ({"budget": -1.0}, UsageError, "not a positive finite number"),
        ({"runner": "relpay"}, UsageError, "Did you mean 'replay'"),
        ({"trials": "nowhere.csv"}, UsageError, "no file 'nowhere.csv'"),
        ({"where": "vcpus > 1000"}, UsageError, "no candidate to test"),
        ({"by": "samples_per_dolar"}, UsageError, "Did you mean 'samples_per_dollar'"),
    ],
)
def test_what_cannot_be_explored(
    home: Path, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        replayed(home, **given)


def test_a_trial_of_an_offer_that_is_not_there_is_told(home: Path) -> None:
    trials, _ = write(home)
    with trials.open("a") as file:
        file.write("resnet,vision,aws/unknown.large,3,ok\n")
    with pytest.raises(TrialsError, match=r"aws/unknown\.large"):
        replayed(home)


def test_a_broken_study_tells_all_of_it(home: Path) -> None:
    (home / "s.toml").write_text(
        '[workload]\ncommand = ["no-such-program", "{batch}"]\n[knobs]\nbatsch = [1]\n'
        '[search]\nbudget = -1\n[candidates]\noffers = "none.csv"\n'
    )
    with pytest.raises(UsageError) as caught:
        read("s.toml", {}, os.environ)
    for part in ("budget", "none.csv", "no-such-program", "batsch", "s.toml"):
        assert part in str(caught.value)


def test_files_of_a_study_lie_beside_it(home: Path) -> None:
    folder = home / "elsewhere"
    folder.mkdir()
    write(folder)
    (folder / "s.toml").write_text(
        '[workload]\nname = "resnet"\n[candidates]\noffers = "offers.csv"\n'
        '[runner]\nname = "replay"\ntrials = "trials.csv"\n[search]\nmax_trials = 2\n'
    )
    assert len(explore("elsewhere/s.toml").tests) == 2


def test_where_prices_are_missing_the_message_says_what_to_do(home: Path) -> None:
    (home / "t.csv").write_text(
        "workload,offer,throughput,provider,instance_type\nw,a/x,10,a,x\nw,a/y,20,a,y\n"
    )
    given = {"runner": "replay", "trials": "t.csv"}
    with pytest.raises(UsageError, match="2 offers are out: price unknown") as caught:
        explore(**given)
    assert "--by samples_per_second" in str(caught.value)
    assert explore(**given, by="samples_per_second").best == "a/y"
    (home / "o.csv").write_text("offer,price_per_hour\na/x,1\na/y,9\n")
    assert explore(**given, offers="o.csv").best == "a/x"


@pytest.mark.parametrize("name", ["trials.csv", "offers.csv"])
def test_half_a_file_is_told_by_its_row(home: Path, name: str) -> None:
    write(home)
    text = (home / name).read_text()
    (home / name).write_text(text[: text.rindex(",")])
    with pytest.raises(TrialsError, match=rf"'{name}' cannot be replayed:\n  row \d+") as caught:
        replayed(home)
    assert str(caught.value).count("cannot be") == 1


def test_the_plan_runs_nothing_and_names_the_first_tests(home: Path) -> None:
    trials, listed = write(home)
    given = {"runner": "replay", "trials": str(trials), "offers": str(listed), "parallel": 2}
    study = read(None, {**given, "workload": "resnet"}, os.environ)
    planned, ended = plan(study, None)
    assert (len(planned), ended) == (2, None)
    first = explore(**{**given, "workload": "resnet", "max_trials": 2})
    assert [test["offer"] for test in planned] == [test.offer for test in first.tests]


# ---- on this machine

SCRIPT = """
import sys, time
batch, kind = int(sys.argv[1]), sys.argv[2]
if batch > 32:
    raise MemoryError("out of memory")
for step in range(100_000):
    time.sleep(0.002 + 0.0004 * batch * (1 if kind == "half" else 2))
    print(f"samples={batch}", flush=True)
"""
STUDY = """
[workload]
name = "tiny"
command = ["{python}", "train.py", "{{batch}}", "{{kind}}"]
pattern = 'samples=(?P<samples>\\d+)'
[knobs]
batch = [8, 32, 64]
kind = ["full", "half"]
[search]
max_trials = 8
[runner]
test = "6s"
price = 1.5
"""


@pytest.fixture
def here(home: Path) -> Path:
    (home / "train.py").write_text(SCRIPT)
    (home / "study.toml").write_text(STUDY.format(python=sys.executable))
    return home


@pytest.mark.slow
def test_knobs_are_searched_on_this_machine(here: Path) -> None:
    found = explore("study.toml")
    settings = [(test.knobs["batch"], test.knobs["kind"], test.status) for test in found.tests]
    assert settings[0] == ("64", "full", "out_of_memory")
    assert settings[1][:2] == ("32", "full")
    assert dict(found.best_knobs) == {"batch": "32", "kind": "half"}
    assert found.ended == "exhausted"
    assert list(found.command) == [sys.executable, "train.py", "32", "half"]
    assert found.settings_left == found.settings - len({s[:2] for s in settings})
    assert found.decision is not None
    assert [entry["offer"]["id"] for entry in found.decision.ranking] == [found.best]
    assert found.decision.candidates == 1
    with open_store(None) as store:
        kept = store.trials(workload="tiny")
    assert [trial.study for trial in kept] == [found.study] * len(settings)
    assert sum(trial.dollars or 0 for trial in kept) == pytest.approx(found.spent)
    assert all(trial.runner == "local" and trial.owner == {} for trial in kept)


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def in_store(status: str) -> list[Trial]:
    if not Path("store.sqlite3").exists():
        return []
    with open_store(None) as store:
        return store.trials(workload="tiny", status=status)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_one_at_a_time_and_on_after_its_end(here: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "underdog", "explore", "study.toml", "--max-trials", "3"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as first:
        until(lambda: in_store("out_of_memory") and in_store("running"))
        with pytest.raises(StoreError, match="being explored already"):
            explore("study.toml")
        os.kill(first.pid, how)
        first.wait(timeout=60)
    assert first.returncode == (-9 if how == signal.SIGKILL else 130)
    found = explore("study.toml", max_trials=2)
    numbers = [test.status for test in found.tests]
    assert numbers.count("out_of_memory") == 1
    kept = in_store("out_of_memory") + in_store("ok") + in_store("interrupted")
    assert found.spent == pytest.approx(sum(trial.dollars or 0 for trial in kept))


def test_this_machine_needs_a_price_where_the_utility_does(here: Path) -> None:
    text = (here / "study.toml").read_text().replace("price = 1.5", "")
    (here / "study.toml").write_text(text)
    with pytest.raises(UsageError, match="price of this machine is unknown"):
        explore("study.toml")


def test_this_machine_must_be_among_the_offers(here: Path) -> None:
    write(here)
    with pytest.raises(UsageError, match="None of the 24 offers"):
        explore("study.toml", offers="offers.csv")
