"""Reading the records folder while it is being written."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from underdog.measuring.records import STEP_FIELDS, ProcessRecords, RecordsReader


def step(index: int, samples: float = 8) -> list[float]:
    return [index, index + 1, samples, 0.1, 0, 0.2, 0.3, 0.1, 0, 0]


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(v).encode() + b"\n" for v in values)


def only(reader: RecordsReader) -> ProcessRecords:
    (process,) = reader.processes
    return process


def test_a_growing_file_is_read_once(tmp_path: Path) -> None:
    reader = RecordsReader(tmp_path)
    assert not reader.poll()
    path = tmp_path / "1-1.jsonl"
    path.write_bytes(lines({"kind": "process", "pid": 1, "rank": 3}, step(0)))
    assert reader.poll()
    assert only(reader).step_count == 1
    assert only(reader).rank == 3
    cut = lines(step(1))
    with path.open("ab") as file:
        file.write(cut[:7])
        file.flush()
        reader.poll()
        assert only(reader).step_count == 1
        file.write(cut[7:])
        file.flush()
    reader.poll()
    assert only(reader).step_count == 2
    assert only(reader).span == (0, 2)
    assert reader.garbage == 0
    assert not reader.poll()


def test_a_line_that_is_cut_off_at_the_end_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "1-1.jsonl").write_bytes(lines(step(0)) + b"[1, 2, 8")
    reader = RecordsReader(tmp_path)
    reader.poll(all_of_it=True)
    assert only(reader).step_count == 1
    assert reader.garbage == 0


def test_files_that_appear_later_are_found(tmp_path: Path) -> None:
    reader = RecordsReader(tmp_path)
    for index in range(3):
        (tmp_path / f"{index}-1.jsonl").write_bytes(lines(step(0)))
        (tmp_path / f"{index}.txt").write_bytes(lines(step(0)))
        reader.poll()
    assert [p.step_count for p in reader.processes] == [1, 1, 1]


def test_a_deleted_folder_keeps_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "1-1.jsonl"
    path.write_bytes(lines(step(0)))
    reader = RecordsReader(tmp_path)
    reader.poll()
    path.unlink()
    tmp_path.rmdir()
    assert not reader.poll()
    assert only(reader).step_count == 1


def test_everything_documented_is_taken(tmp_path: Path) -> None:
    (tmp_path / "1-1.jsonl").write_bytes(
        lines(
            {"kind": "process", "pid": 1, "rank": 0},
            step(0),
            {"kind": "phases", "step": 0, "forward": 0.5},
            {"kind": "pause", "pause": "evaluation", "start": 1, "end": 2},
            {"kind": "software", "libraries": {"torch": "2"}, "settings": {"threads": 2}},
            {"kind": "software", "settings": {"compile": True}},
            {"kind": "profile", "parameters": 5, "flops_per_sample": None},
            {"kind": "memory", "accelerator_peak_bytes": 7},
            {"kind": "memory", "accelerator_peak_bytes": 9},
            {"kind": "note", "code": "x", "message": "m", "remedy": "r"},
            {"kind": "rate", "samples": 10, "seconds": 2, "end": 5},
            {"kind": "error", "type": "ValueError", "message": "no", "out_of_memory": False},
            {"kind": "end", "perf": 3, "reason": "exit"},
        )
    )
    reader = RecordsReader(tmp_path)
    reader.poll()
    found = only(reader)
    assert found.steps[5] == 0.5
    assert found.pauses == [("evaluation", 1, 2)]
    assert found.software == {"libraries": {"torch": "2"}, "settings": {"threads": 2, "compile": 1}}
    assert found.profile == {"parameters": 5}
    assert found.memory == {"accelerator_peak_bytes": 9}
    assert found.notes == [{"code": "x", "message": "m", "remedy": "r"}]
    assert found.rates == [(3, 5, 10)]
    assert found.error
    assert found.ended
    assert reader.garbage == 0


GARBAGE = [
    b"\xff\xfe\x00",
    b"not json",
    b'"text"',
    b"7",
    b"null",
    b"[]",
    b"[1, 2]",
    b"[2, 1, 8]",
    b'["a", "b", 3]',
    b"[1, 2, null]",
    b"[1e999, 2, 3]",
    b"[" * 5000,
    b'{"kind": "nonsense"}',
    b'{"kind": ["process"]}',
    b'{"kind": "pause", "pause": "x", "start": 2, "end": 1}',
    b'{"kind": "phases", "step": 10}',
    b'{"kind": "rate", "samples": 1, "seconds": 0, "end": 1}',
    b'{"kind": "note"}',
    b"{}",
]


def test_garbage_is_counted_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / "1-1.jsonl").write_bytes(
        lines(step(0)) + b"\n".join(GARBAGE) + b"\n\n" + lines(step(1))
    )
    reader = RecordsReader(tmp_path)
    reader.poll(all_of_it=True)
    assert only(reader).step_count == 2
    assert reader.garbage == len(GARBAGE)


@given(st.binary(max_size=300))
def test_no_content_breaks_the_reader(data: bytes) -> None:
    process = ProcessRecords(Path("x"))
    from underdog.measuring.records import _File

    file = _File(Path("x"))
    file.records = process
    for line in data.split(b"\n"):
        file._take(line)
    assert len(process.steps) % STEP_FIELDS == 0


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["kind", "step"]), inner)
        ),
    )
)
def test_no_value_breaks_the_reader(value: object) -> None:
    ProcessRecords(Path("x")).take(value)


def test_a_huge_file_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "1-1.jsonl"
    count = 150_000
    with path.open("wb") as file:
        for index in range(count):
            file.write(b"[%d, %d, 8, 0.125, 0, 0.25, 0.25, 0.125, 0, 0]\n" % (index, index + 1))
    assert os.path.getsize(path) > 1 << 22
    reader = RecordsReader(tmp_path)
    polls = 0
    while reader.poll():
        polls += 1
    assert polls > 1
    assert only(reader).step_count == count
    assert reader.garbage == 0
