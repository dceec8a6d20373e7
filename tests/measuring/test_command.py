"""The command's name as a workload, and its knobs."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.errors import UsageError
from underdog.measuring.command import (
    check_knobs,
    combinations,
    parse_knobs,
    script_folder,
    workload_name,
)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py --lr 1", "train"),
        ("python -u src/my_train.py", "my_train"),
        ("torchrun --nproc-per-node 2 train.py", "train"),
        ("python -m torch.distributed.run --nproc_per_node=2 a/b/fit.py", "fit"),
        ("python -m package.train", "package.train"),
        ("bash -c 'cd x && python nested/run_it.py; echo'", "run_it"),
        ("./train.py", "train"),
        ("./finetune", "finetune"),
        ("bash launch.sh", "launch"),
        ("env OMP_NUM_THREADS=2 python 'mit leerzeichen.py'", "leerzeichen"),
    ],
)
def test_name_comes_from_the_script(command: str, name: str) -> None:
    assert workload_name(shlex.split(command)) == name


def test_a_common_name_has_its_folder_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("nanoGPT", "mnist"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.py").write_text("")
    monkeypatch.chdir(tmp_path / "mnist")
    assert workload_name(["python", "train.py"]) == "mnist/train"
    assert workload_name(["python", "../nanoGPT/train.py"]) == "nanoGPT/train"


def test_script_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert script_folder(["python", "a/train.py"]) == tmp_path / "a"
    assert script_folder(["python", "-m", "x"]) == tmp_path


def test_each_combination_is_a_command() -> None:
    knobs = parse_knobs(["batch=8,16", "dtype=bf16"])
    command = ["python", "t.py", "--b={batch}", "{dtype}-{batch}", "{{batch}}", '{"json": 1}']
    check_knobs(command, knobs)
    found = combinations(command, knobs)
    assert [values for _, values in found] == [
        {"batch": "8", "dtype": "bf16"},
        {"batch": "16", "dtype": "bf16"},
    ]
    assert found[1][0] == ["python", "t.py", "--b=16", "bf16-16", "{batch}", '{"json": 1}']


@given(st.lists(st.text()))
def test_without_knobs_no_word_is_touched(command: list[str]) -> None:
    assert combinations(command, {}) == [(command, {})]


@given(st.dictionaries(st.from_regex(r"[a-z]\w{0,5}", fullmatch=True), st.text(min_size=1)))
def test_a_value_is_never_read_again_as_a_placeholder(values: dict[str, str]) -> None:
    command = ["{" + name + "}" for name in values]
    knobs = {name: [value] for name, value in values.items()}
    assert combinations(command, knobs)[0][0] == list(values.values())


@pytest.mark.parametrize("text", ["batch", "=8", "batch=", "batch=8,,16", "1x=3", "a b=1"])
def test_a_malformed_knob_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="is not a knob"):
        parse_knobs([text])


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse_knobs(["batch", "a=1", "a=2"])
    assert "'batch'" in str(caught.value)
    assert "'a' is given twice" in str(caught.value)


def test_a_placeholder_that_is_no_knob_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        check_knobs(["x", "{bach}"], {"batch": ["1"]})
    assert "'{bach}'" in str(caught.value)
    assert "Did you mean 'batch'?" in str(caught.value)
    assert "does not name the knob 'batch'" in str(caught.value)
