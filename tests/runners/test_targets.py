"""The page of targets names every key of every runner, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from underdog import plugins, runners

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "targets.md"


def sections() -> dict[str, str]:
    parts = re.split(r"^## (\w+)\n", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", runners.names())
def test_the_page_names_each_key(name: str) -> None:
    target = getattr(plugins.load(runners.PACKAGE, runners.GROUP, name), "Target", None)
    first = re.findall(r"^\| (`[^|]*) \|", sections().get(name, ""), flags=re.MULTILINE)
    named = {key for cell in first for key in re.findall(r"`(\w+)`", cell)}
    keys = {field.encode_name for field in msgspec.structs.fields(target)} if target else set()
    assert named == keys
