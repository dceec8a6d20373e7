"""The rows of a CSV or JSON file, gzipped or not, with one message for all that can be wrong."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from underdog.core.csv_cell import unguarded
from underdog.core.problems import Problems
from underdog.errors import TrialsError, did_you_mean

Row = tuple[int, Mapping[str, Any]]


def read_rows(path: Path, problems: Problems, required: Sequence[str] = ()) -> Iterator[Row]:
    """The rows with their numbers: the line in a CSV file, the place (from 1) in a JSON list.

    Rows that cannot be taken apart go to ``problems``.

    Raises:
        TrialsError: the file cannot be read, is empty or no CSV or JSON, or lacks a required
            column.
    """
    with _told(path):
        with _open(path) as file:
            start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if not start:
            raise TrialsError(f"'{path}' is empty.", "Its first line names the columns.")
        if start in (b"[", b"{"):
            yield from _json_rows(path, problems)
        else:
            yield from _csv_rows(path, problems, required)


def _json_rows(path: Path, problems: Problems) -> Iterator[Row]:
    with _open(path) as file:
        try:
            # the standard library's reader: it takes what Python makes of odd file names, and lets
            # NaN through to be told with its row
            value = json.loads(file.read())
        except (ValueError, RecursionError) as error:
            raise TrialsError(f"'{path}' is not JSON: {error}.") from None
    for number, row in enumerate(value if isinstance(value, list) else [value], start=1):
        if isinstance(row, dict):
            yield number, row
        else:
            problems.add(number, "row", "it is no object with named fields")


def _csv_rows(path: Path, problems: Problems, required: Sequence[str]) -> Iterator[Row]:
    with _open(path) as binary:
        reader = csv.reader(_lines(binary), strict=True)
        header = [unguarded(name.strip()) for name in next(reader, [])]
        _check_header(path, header, required)
        for fields in reader:
            if len(fields) == len(header):
                yield reader.line_num, dict(zip(header, map(unguarded, fields), strict=True))
            elif fields:
                fault = f"{len(fields)} fields where the header names {len(header)}"
                problems.add(reader.line_num, "row", fault)


def _check_header(path: Path, header: list[str], required: Sequence[str]) -> None:
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise TrialsError(f"'{path}' has the column '{twice[0]}' twice.")
    for name in required:
        if name not in header:
            named = [known for known in header if known]
            raise TrialsError(f"'{path}' has no column '{name}'.", did_you_mean(name, named))


def _lines(binary: IO[bytes]) -> Iterator[str]:
    for number, line in enumerate(binary, start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise TrialsError(
                f"Line {number} is not UTF-8: byte {line[error.start]:#04x} at {error.start + 1}.",
                "Convert the file: iconv -f latin1 -t utf-8 FILE",
            ) from None


def _open(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if zipped else path.open("rb")  # type: ignore[return-value]


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TrialsError(f"'{path}' is damaged or cut short: {error}.") from None
    except csv.Error as error:
        raise TrialsError(f"'{path}' is no CSV file that can be read: {error}.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise TrialsError(f"'{path}' cannot be read: {why}.") from None
