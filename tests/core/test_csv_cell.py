"""No cell computes, and every text comes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from underdog.core.csv_cell import guarded, unguarded

TEXTS = st.text() | st.text(alphabet="'=+-@\t\r1.e5ax")


@given(TEXTS)
def test_every_text_comes_back(text: str) -> None:
    assert unguarded(guarded(text)) == text


@given(TEXTS)
def test_no_formula_is_left(text: str) -> None:
    cell = guarded(text)
    if cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        float(cell)  # a number computes nothing
