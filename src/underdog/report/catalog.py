"""The catalog's snapshots, differences and findings as text for people; each comes as a dict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.table import Table
from rich.text import Text

from underdog.report.measurement import shown

Row = Mapping[str, Any]
MOST = 20


def snapshots(entries: Sequence[Row], newest: str) -> Table:
    """One line for each snapshot, the newest marked."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("written", "hash", "offers", "providers", ""):
        table.add_column(name, justify="right" if name == "offers" else "left")
    for entry in entries:
        providers = sorted({str(one.get("provider")) for one in entry["sources"]})
        note = "bundled" if entry["bundled"] else ""
        if entry["problem"] is not None:
            note = f"broken: {shown(entry['problem'])}"
        elif entry["hash"] == newest:
            note = f"{note}, in use".lstrip(", ")
        offers = "" if entry["problem"] else f"{entry['rows']:,}"
        listed = _some(providers, 6)
        cells = (entry["made"][:16].replace("T", " "), entry["hash"][:12], offers, listed, note)
        table.add_row(*map(Text, cells))
    return table


def difference(found: Row) -> list[str]:
    """What changed, as lines; what is long is cut off and counted."""
    lines = [
        f"{len(found['new_types']):,} new and {len(found['gone_types']):,} gone instance types, "
        f"{found['offers']['new']:,} new and {found['offers']['gone']:,} gone offers"
    ]
    lines += _named("new", found["new_types"]) + _named("gone", found["gone_types"])
    if found["moves"]:
        over = f" by more than {found['over']:.4%}".replace(".0000%", "%") if found["over"] else ""
        lines.append(f"{len(found['moves']):,} prices moved{over}")
        lines += [f"  {_move(move)}" for move in found["moves"][:MOST]]
        lines += _rest(found["moves"])
    if found["facts"]:
        lines.append(f"{len(found['facts']):,} figures of instance types changed")
        lines += [f"  {_fact(one)}" for one in found["facts"][:MOST]]
        lines += _rest(found["facts"])
    return lines


def findings(found: Sequence[Row]) -> list[str]:
    """The findings by rule, with how many each has and the first of them.

    Args:
        found: dicts of ``rule, severity, offer, message, explained``.
    """
    lines = []
    for rule, group in groupby(sorted(found, key=_rule), key=_rule):
        same = list(group)
        lines.append(
            f"{len(same):>6,}  {rule}, {same[0]['severity']}: {shown(same[0]['explained'])}"
        )
        lines += [f"        {shown(one['offer'])}: {shown(one['message'])}" for one in same[1:3]]
        lines += [f"        and {len(same) - 3:,} more"] if len(same) > 3 else []
    return lines


def _rule(one: Row) -> str:
    return str(one["rule"])


def left_out(found: Iterable[Row]) -> list[str]:
    """What is no offer: counted, with the reason and some of the names."""
    return [
        line
        for one in found
        for line in (
            f"{one['rows']:>6,}  {shown(str(one['provider']))}: {shown(str(one['reason']))}",
            f"        {shown(_some([name for name in one['names'] if name], 3))}",
        )
        if line.strip()
    ]


def _named(word: str, names: Sequence[str]) -> list[str]:
    return [f"  {word}: {shown(_some(names, 10))}"] if names else []


def _rest(all_of_them: Sequence[Any]) -> list[str]:
    more = len(all_of_them) - MOST
    return [f"  and {more:,} more; all of them with --json"] if more > 0 else []


def _some(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _move(move: Row) -> str:
    change = "" if move["change"] is None else f" ({move['change']:+.1%})"
    return f"{shown(move['offer'])}: {_value(move['old'])} → {_value(move['new'])} USD/h{change}"


def _fact(fact: Row) -> str:
    name = shown("/".join((fact["provider"], fact["instance_type"])))
    return f"{name} {fact['column']}: {_value(fact['old'])} → {_value(fact['new'])}"


def _value(value: Any) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.4g}" if isinstance(value, float) else shown(str(value))
