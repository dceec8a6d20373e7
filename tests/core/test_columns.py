"""The page of columns is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from underdog.core.columns import OFFER_COLUMNS, column_meant
from underdog.core.functions import FUNCTIONS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_page_of_columns_is_the_list_of_columns() -> None:
    text = (REFERENCE / "columns.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert lines == [f"| `{c.name}` | {c.kind} | {c.unit} | {c.doc} |" for c in OFFER_COLUMNS]


def test_the_page_of_expressions_names_every_function() -> None:
    text = (REFERENCE / "expressions.md").read_text()
    assert [n for n in sorted(FUNCTIONS) if not re.search(rf"`{n}(\(|`)", text)] == []


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("price", "price_per_hour"),
        ("acelerator", "accelerator"),
        ("gpu", "accelerator"),
        ("VRAM", "accelerator_memory_gib"),
        ("memory", "memory_gib"),
        ("price_hour", "price_per_hour"),
        ("type", "instance_type"),
    ],
)
def test_the_column_that_people_mean(typed: str, meant: str) -> None:
    assert column_meant(typed) == f"Did you mean '{meant}'?"


def test_a_name_like_no_other_gets_no_silly_guess() -> None:
    assert column_meant("qqqq") == "underdog offers --columns all lists them."
