"""The page of columns is true."""

from __future__ import annotations

import re
from pathlib import Path

from underdog.core.columns import OFFER_COLUMNS
from underdog.core.functions import FUNCTIONS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_the_page_of_columns_is_the_list_of_columns() -> None:
    text = (REFERENCE / "columns.md").read_text()
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    assert lines == [f"| `{c.name}` | {c.kind} | {c.unit} | {c.doc} |" for c in OFFER_COLUMNS]


def test_the_page_of_expressions_names_every_function() -> None:
    text = (REFERENCE / "expressions.md").read_text()
    assert [n for n in sorted(FUNCTIONS) if not re.search(rf"`{n}(\(|`)", text)] == []
