"""The faults of a file, collected while it is read, and the reading of its numbers."""

from __future__ import annotations

import math
from typing import Any

from underdog.errors import TrialsError

SHOWN = 10
# no quantity of a machine is outside; within, no metric leaves the range of a double
SMALLEST, LARGEST = 1e-100, 1e100


class Problems:
    """Faults by row and field; the first ten are kept, the rest are counted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.count = 0
        self._first: list[str] = []

    def add(self, row: int, field: str, fault: str) -> None:
        """Note a fault of one field; ``row`` is the line in a CSV file, the place in a list."""
        self.count += 1
        if self.count <= SHOWN:
            self._first.append(f"  row {row}, {field}: {fault}")

    def text_of_all(self) -> str:
        """The faults as lines, the file first."""
        lines = [f"'{self.file}' cannot be imported:", *self._first]
        if self.count > SHOWN:
            lines.append(f"  and {self.count - SHOWN:,} more")
        return "\n".join(lines)

    def number(self, row: int, field: str, given: Any, *, zero: bool = False) -> float | None:
        """A positive finite number (or zero where allowed); None for an empty or a faulty field."""
        if given is None or given == "":
            return None
        try:
            if isinstance(given, bool) or "_" in str(given):
                raise ValueError
            number = float(given)
        except (TypeError, ValueError, OverflowError):
            self.add(row, field, f"{shown(given)} is not a number")
            return None
        if SMALLEST < number < LARGEST or (zero and number == 0):
            return number
        if math.isfinite(number) and number > 0:
            self.add(row, field, f"{shown(given)} is beyond anything that can be")
            return None
        if number == 0:
            self.add(row, field, "0 is not a value that can be; leave it empty where it is unknown")
        else:
            wanted = "zero or positive" if zero else "positive"
            self.add(row, field, f"{shown(given)} is not a {wanted} finite number")
        return None

    def text(self, row: int, field: str, given: Any) -> str | None:
        """Text without blanks around it; None for an empty or a faulty field."""
        if given is None:
            return None
        if isinstance(given, str):
            return given.strip() or None
        if isinstance(given, int | float) and not isinstance(given, bool):
            return str(given)
        self.add(row, field, f"{shown(given)} is not text")
        return None


def raise_if_any(*files: Problems) -> None:
    """Raise the faults of all files as one error.

    Raises:
        TrialsError: there is at least one fault.
    """
    faulty = [problems.text_of_all() for problems in files if problems.count]
    if faulty:
        raise TrialsError("\n".join(faulty), "Nothing was imported.")


def shown(value: Any) -> str:
    """A value of the user's in quotes, cut where it is long."""
    text = str(value)
    return f"'{text if len(text) <= 40 else text[:40] + '…'}'"
