"""Steps and samples are exact on every kind of loop, whatever the script does around them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from observed import SCRIPTS, Observed, check, observe

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]
pytest.importorskip("torch")


def kinds(script: str) -> list[str]:
    """The public functions of a script, which are its loops, and the entries of its table."""
    text = (SCRIPTS / script).read_text()
    functions = re.findall(r"^def ([a-z]\w*)\(truth: Truth\)", text, re.MULTILINE)
    return functions + re.findall(r'^    "(\w+)": lambda t', text, re.MULTILINE)


UNKNOWABLE = {"time_first"}  # a script that gives no way to know its samples


@pytest.mark.parametrize("kind", kinds("updates.py"))
def test_updates(kind: str, tmp_path: Path) -> None:
    check(observe(["updates.py", kind], tmp_path / "records"))


@pytest.mark.parametrize("kind", [k for k in kinds("batches.py") if k not in UNKNOWABLE])
def test_batches(kind: str, tmp_path: Path) -> None:
    check(observe(["batches.py", kind], tmp_path / "records"))


@pytest.mark.parametrize("kind", [k for k in kinds("around.py") if k != "out_of_memory"])
def test_around(kind: str, tmp_path: Path) -> None:
    observed = observe(["around.py", kind], tmp_path / "records")
    check(observed)
    for name in ("evaluation", "checkpoint"):
        truth = observed.truths[0]["pauses"].get(name, 0.0)
        off = max(0.1 * truth, 0.005) if truth else 0  # what is no pause is not told as one
        assert abs(observed.only.paused(name) - truth) <= off


def test_out_of_memory_is_told(tmp_path: Path) -> None:
    observed = observe(["around.py", "out_of_memory"], tmp_path / "records")
    assert observed.returncode == 1
    assert len(observed.only.steps) == observed.truths[0]["steps"]
    (error,) = observed.only.of("error")
    assert error["type"] == "RuntimeError"
    assert error["out_of_memory"] is True


@pytest.mark.parametrize("kind", kinds("compiled.py"))
def test_compiled(kind: str, tmp_path: Path) -> None:
    observed = observe(["compiled.py", kind], tmp_path / "records")
    check(observed)
    assert observed.only.paused("compile") > 0
    assert graphs(observed) == graphs_without_probe(kind)


def graphs(observed: Observed) -> str:
    return observed.stderr.split("graphs ")[1].split()[0]


def graphs_without_probe(kind: str) -> str:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "compiled.py", kind],
        cwd=SCRIPTS,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr.split("graphs ")[1].split()[0]


def check_ranks(observed: Observed) -> None:
    check(observed)
    assert {p.about["rank"] for p in observed.trained} == {0, 1}
    assert {p.about["world_size"] for p in observed.trained} == {2}
    assert all(sum(step[8] for step in p.steps) > 0 for p in observed.trained)


def test_torchrun(tmp_path: Path) -> None:
    import sys

    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    # it takes a free port itself
    torchrun += ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"]
    check_ranks(observe(["ranks.py"], tmp_path / "records", python=torchrun))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_ranks_that_the_script_starts(method: str, tmp_path: Path) -> None:
    check_ranks(observe(["ranks.py", method, str(tmp_path / "meeting")], tmp_path / "records"))


def test_a_script_that_cannot_tell_says_so(tmp_path: Path) -> None:
    observed = observe(["batches.py", "time_first"], tmp_path / "records")
    (note,) = [n for n in observed.only.of("note") if n["code"] == "samples_from_inputs"]
    assert "--samples-per-step" in note["remedy"]
    assert "LSTM" in note["message"]
    told = observe(["batches.py", "time_first"], tmp_path / "told", samples_per_step=20)
    check(told)


def test_two_loaders_are_noted(tmp_path: Path) -> None:
    assert "several_loaders" in observe(["batches.py", "zipped"], tmp_path / "r").only.notes


def test_plain_training_has_no_doubts(tmp_path: Path) -> None:
    assert observe(["updates.py", "plain"], tmp_path / "records").only.notes == set()
