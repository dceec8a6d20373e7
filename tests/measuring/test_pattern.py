"""Reading a script's own rate from its output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from underdog.errors import UsageError
from underdog.measuring.pattern import RateReader, compile_pattern


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def read(
    tmp_path: Path, pattern: str, lines: list[tuple[float, str]], samples: float | None = None
) -> tuple[list[tuple[float, float, float]], RateReader]:
    clock = Clock()
    reader = RateReader(compile_pattern(pattern, samples), tmp_path, samples, clock)
    for time, line in lines:
        clock.now = time
        reader.line(line)
    texts = [line for f in tmp_path.glob("*.jsonl") for line in f.read_text().splitlines()]
    rows = [json.loads(text) for text in texts]
    assert all(row["kind"] == "rate" for row in rows)
    return [(r["samples"], r["seconds"], r["end"]) for r in rows], reader


def test_a_rate_stands_for_the_time_since_the_last_one(tmp_path: Path) -> None:
    lines = [(100.0, "step 1: 50 img/s"), (102.0, "noise"), (104.0, "step 2: 1,200.5 img/s")]
    rows, reader = read(tmp_path, r"(?P<rate>[\d.,]+) img/s", lines)
    assert rows == [(4802.0, 4.0, 104.0)]
    assert reader.matches == 2


def test_samples_with_their_own_seconds(tmp_path: Path) -> None:
    lines = [(7.0, "512 samples in 0.25 s"), (8.0, "256 samples in 1e-1 s")]
    rows, _ = read(tmp_path, r"(?P<samples>\d+) samples in (?P<seconds>\S+) s", lines)
    assert rows == [(512.0, 0.25, 7.0), (256.0, 0.1, 8.0)]


def test_samples_by_the_clock(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, r"n=(?P<samples>\d+)", [(1.0, "n=10"), (3.0, "n=20")])
    assert rows == [(20.0, 2.0, 3.0)]


def test_steps_with_given_samples(tmp_path: Path) -> None:
    lines = [(1.0, "step 10"), (2.0, "step 30"), (4.0, "step 31")]
    rows, _ = read(tmp_path, r"step (?P<step>\d+)", lines, samples=8)
    assert rows == [(160.0, 1.0, 2.0), (8.0, 2.0, 4.0)]


@pytest.mark.parametrize("line", ["nan img/s", "inf img/s", "x img/s", "-5 img/s", "0 img/s"])
def test_what_is_no_rate_is_none(tmp_path: Path, line: str) -> None:
    lines = [(1.0, "1 img/s"), (2.0, line)]
    rows, _ = read(tmp_path, r"(?P<rate>\S+) img/s", lines)
    assert rows == []


def test_a_deleted_folder_does_not_end_the_script(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    _, reader = read(folder, r"(?P<samples>\d+)", [(1.0, "5"), (2.0, "5")])
    assert reader.unreadable == 1


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "is not a regular expression"),
        ("(?P<rat>x)", "Did you mean 'rate'"),
        ("plain", "names no group"),
        ("(?P<seconds>x)", "names no group"),
        ("(?P<step>x)", "--samples-per-step"),
    ],
)
def test_a_bad_pattern_is_told(pattern: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_pattern(pattern, None)
    assert words in str(caught.value)
    assert f"'{pattern}'" in str(caught.value)
