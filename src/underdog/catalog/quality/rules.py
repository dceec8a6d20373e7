"""What a quality rule is, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["quarantine", "caveat", "reject_source"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A query over the offers that no rule has taken out so far; ``table`` has the columns.

    Args:
        name: what stands in the column ``caveats`` and in the list of what was left out.
        severity: whether it takes the offer out, doubts it, or refuses the whole source.
        says: the fault in words that can follow "for".
        remedy: one thing to do about it.
        query: gives ``row, message``, or of what is no row of the table ``offer, message``.
        rows: which of the two.
    """

    name: str
    severity: Severity
    says: str
    remedy: str
    query: str
    rows: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found.

    Args:
        rule: its name.
        severity: ``quarantine``: the offer is taken out. ``caveat``: it stays, with the name of the
            rule in ``caveats``. ``reject_source``: the whole answer of the source is not used.
        row: index of the offer; None where it is not about one that is there.
        offer: the name of the offer; of a whole source that of the provider.
        message: the fault with its figures, a sentence without its full stop.
    """

    rule: str
    severity: Severity
    row: int | None
    offer: str
    message: str
