"""Printing of data."""

from __future__ import annotations

import json

import pytest

from underdog.cli.common import print_json
from underdog.cli.group import run


def test_bytes_that_are_no_utf_8_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"command": ["python", "tr\udcffain.py"]})
    assert json.loads(capsys.readouterr().out) == {"command": ["python", "tr\udcffain.py"]}


def test_nan_becomes_null(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": float("nan"), "b": float("inf")})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": None}


@pytest.mark.parametrize("command", ["choose", "offers", "trials"])
def test_two_formats_at_once_are_told(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--json", "--format", "csv"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "contradict each other" in output.err
