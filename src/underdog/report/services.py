"""What a person sees of the layers of service: what the work costs on each, and where they meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from underdog.core.layers import BARE

_WAYS = {"kept": "kept", "given_back": "given back when idle", "per_unit": "per unit"}
_ONCE = {**_WAYS, "given_back": "given back at the end"}


def compared(services: Mapping[str, Any], number: Callable[[float], str]) -> RenderableType:
    """The layers as a table, the cheapest first, and a sentence per API.

    Args:
        services: ``Decision.services``.
        number: a number for people.
    """
    per = " a month" if services["hours"] else ""
    title = Text(f"{number(services['samples'])} samples{per}, by service:", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="dim")
    for heading in (f"${per}", "$/M samples"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("service", "paid", "machine"):
        table.add_column(heading, overflow="fold")
    for layer in services["layers"]:
        style = "dim" if layer["source"] == "predicted" else ""
        texts = (
            _dollars(layer, number),
            number(layer["per_million_samples"]),
            layer["name"],
            _how(layer, bool(services["hours"])),
            (f"{layer['nodes']} × " if (layer["nodes"] or 1) > 1 else "") + (layer["offer"] or ""),
        )
        table.add_row(*(Text(text, style=style) for text in texts))
    lines = [Text(line) for line in sentences(services, number)]
    said = [Text(line, style="dim") for line in services.get("assumptions", [])]
    return Group(title, Padding(table, (0, 0, 0, 2), expand=False), *lines, *said)


def _dollars(layer: Mapping[str, Any], number: Callable[[float], str]) -> str:
    cost = layer["cost"]
    if layer["source"] != "predicted":
        return number(cost["value"])
    return f"~{number(cost['value'])} ({number(cost['low'])}–{number(cost['high'])})"


def _how(layer: Mapping[str, Any], monthly: bool) -> str:
    way = (_WAYS if monthly else _ONCE)[layer["way"]]
    if layer["busy"] is None:
        return way
    many = "" if layer["machines"] == 1 else f"{layer['machines']:,} machines, "
    return f"{way}, {many}{layer['busy']:.0%} busy"


def sentences(services: Mapping[str, Any], number: Callable[[float], str]) -> list[str]:
    """What management costs, and where each price per unit and the machines meet, in words."""
    managed = [_managed(layer, services, number) for layer in services["layers"]]
    met = [_sentence(meeting, services, number) for meeting in services["break_even"]]
    return [*filter(None, managed), *met]


def _managed(
    layer: Mapping[str, Any], services: Mapping[str, Any], number: Callable[[float], str]
) -> str | None:
    """By how much a managed service is dearer than the bare machine, paid in the same way."""
    same = (one for one in services["layers"] if one["way"] == layer["way"])
    bare = next((one for one in same if one["name"] == BARE), None)
    if layer["way"] == "per_unit" or bare is None or bare is layer:
        return None
    more = layer["cost"]["value"] - bare["cost"]["value"]
    per = " a month" if services["hours"] else ""
    way = (_WAYS if services["hours"] else _ONCE)[layer["way"]]
    if abs(more) < 0.005 * bare["cost"]["value"]:
        return f"{layer['name']} costs as much as the bare machine ({way})."
    than = "more" if more > 0 else "less"
    share = abs(more) / bare["cost"]["value"]
    dollars = f"${number(abs(more))}{per}"
    return f"{layer['name']} costs {dollars} {than} than the bare machine ({way}), {share:.0%}."


def _sentence(
    meeting: Mapping[str, Any], services: Mapping[str, Any], number: Callable[[float], str]
) -> str:
    per, ways = (" a month", _WAYS) if services["hours"] else ("", _ONCE)
    billed, way = meeting["by"] != "per_unit", ways[meeting["way"]]
    name = f"{meeting['name']}, {ways[meeting['by']]}," if billed else meeting["name"]
    if meeting["below"] is None:
        every = BARE if billed else "machine"
        return f"{name} is cheaper than every {every} that is {way}, at any volume."
    machine = f"{meeting['offer']} ({meeting['against']}, {way}, {meeting['source']})"
    if meeting["below"] == 0:
        return f"{machine} is cheaper than {name} at any volume."
    said = f"Below {number(meeting['below'])} samples{per} {name} is cheaper; above, {machine}"
    if meeting["always"] is None:
        return f"{said}, in turn, for machines come whole."
    if meeting["always"] > meeting["below"]:
        last = f"{number(meeting['always'])} samples"
        return f"{said}, without exception from {last} on, for machines come whole."
    return f"{said}."
