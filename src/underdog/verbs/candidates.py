"""The candidates of a study: of the offers that nothing rules out one for each machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from underdog.core import candidates as offered
from underdog.core.choosing import Choice
from underdog.core.expected import Expected
from underdog.core.ledger import OFFER_ID
from underdog.core.study import Study
from underdog.errors import UsageError
from underdog.verbs.recorded import Recorded

PRICE_UNKNOWN = "price unknown"  # the constraint that rules an offer out for it


def find(
    study: Study,
    choice: Choice,
    more: Sequence[Mapping[str, Any]],
    recorded: Recorded | None,
    tables: Collection[int],
) -> tuple[list[int], list[dict[str, Any]], list[str]]:
    """Rows of the table, the offers, and their names: what nothing rules out.

    Args:
        tables: rows that say how the runner gets at them; where there are any, no other is meant.

    Raises:
        UsageError: nothing is left; what rules how many out is told.
    """
    found = choice.table.run(
        f"SELECT c.row, provider, instance_type, nodes, price_per_hour, {OFFER_ID} FROM candidates "
        "AS c WHERE c.row IN (SELECT row FROM scored WHERE excluded IS NULL) ORDER BY c.row"
    ).fetchall()
    found = [line for line in found if not tables or line[0] in tables]
    named = {row: str(more[row].get("offer") or id) if more else id for row, *_, id in found}
    price = {row: price for row, *_, price, _ in found}
    if recorded is not None:
        kept = [row for row in named if named[row] in recorded.candidates]
    else:
        machines = [(row, (*machine, *_facts(more, row))) for row, *machine, _, _ in found]
        kept = _best_of_each(choice, machines, price)
    if study.limit is not None and study.limit < len(kept):
        kept = sorted(sorted(kept, key=lambda r: price[r] or float("inf"))[: study.limit])
    if not kept:
        raise _no_candidate(study, choice)
    rows = _rows(choice, kept)
    names = _distinct([named[row] for row in kept])
    return kept, rows, names


def _best_of_each(
    choice: Choice, machines: Sequence[tuple[int, Any]], price: Mapping[int, float | None]
) -> list[int]:
    """Of the offers of one machine the one that choosing would take."""
    rows = [row for row, _ in machines]
    prices = np.array([price[row] for row in rows], dtype=float)
    soon = "hours_to_train" in choice.request.utility.first.expression.columns
    figures = Expected.of(choice.table, rows, choice.supply).takes(prices, soon)
    return offered.one_of_each(
        (row, machine, tuple(takes))
        for (row, machine), takes in zip(machines, figures.tolist(), strict=True)
    )


def _no_candidate(study: Study, choice: Choice) -> UsageError:
    """Why nothing can be tested, and what to do about the most frequent reason."""
    causes = [(line["cause"], line["offers"]) for line in choice.funnel()]
    out = "\n".join(
        f"  {count:,} offer{'s are' if count > 1 else ' is'} out: {cause}"
        for cause, count in causes
    )
    remedy = "Loosen what rules them out, or name other offers: --offers FILE."
    if causes and causes[0][0] == PRICE_UNKNOWN:
        remedy = (
            f"'{study.by}' needs a price. Search by what needs none, --by samples_per_second; or "
            "name a file that has it, --offers FILE, with the columns offer and price_per_hour."
        )
    return UsageError(f"There is no candidate to test.\n{out}", remedy)


def _facts(more: Sequence[Mapping[str, Any]], row: int) -> tuple[str, ...]:
    """What the user's file says of an offer beyond our columns: other disks are other machines."""
    if not more:
        return ()
    return tuple(f"{k}={v}" for k, v in sorted(more[row].items()) if k != "offer")


def _distinct(names: Sequence[str]) -> list[str]:
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return found


def _rows(choice: Choice, kept: Sequence[int]) -> list[dict[str, Any]]:
    listed = ", ".join(map(str, kept))
    found = choice.table.run(f"SELECT * FROM candidates WHERE row IN ({listed}) ORDER BY row")
    names = [part[0] for part in found.description or ()]
    rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    by_row = {row.pop("row"): row for row in rows}
    return [by_row[row] for row in kept]
