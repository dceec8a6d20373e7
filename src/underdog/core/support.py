"""The support matrix: what reaches which machine, as SQL over the columns of an offer.

A need (a number format, a kernel, a library) is reached on a machine, is not, or it is unknown:
nothing is concluded from what no source says. ``docs/reference/support.md`` has the matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from underdog.core.constraints import Constraint, text
from underdog.errors import UsageError, nearest

State = Literal["yes", "no", "unknown"]
KINDS = ("format", "attention", "compiler", "distributed", "library", "framework")
STACKS = ("cuda", "rocm", "xla", "neuron", "habana", "xpu", "cpu")

# of an offer, what the matrix looks at
COLUMNS = (
    *("instance_type", "service", "accelerator", "accelerator_count", "compute_capability"),
    *("software", "cpu_extensions", "fp64_tflops", "fp32_tflops", "tf32_tflops", "fp16_tflops"),
    *("bf16_tflops", "fp8_tflops", "fp4_tflops", "int8_tops"),
)
ACCELERATED = "(accelerator IS NOT NULL OR coalesce(accelerator_count, 0) > 0)"
_THIS = "coalesce(accelerator, 'this')"
_CAPABILITY = "printf('%.1f', compute_capability)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """One row: what a source says of one stack; ``data/support.toml`` explains the fields.

    ``named`` are the targets as the row has them, ``accelerators`` what they stand for.
    """

    stack: str
    source: str
    reach: State = "yes"
    since: float | None = None
    until: float | None = None
    named: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    minimum: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Need:
    """What a workload may need; ``paces`` are rates of fp64 over fp32 by compute capability."""

    key: str
    title: str
    kind: str
    on: tuple[Reach, ...]
    aliases: tuple[str, ...] = ()
    column: str | None = None
    pace: float | None = None
    slow: State = "no"
    service: str | None = None
    only: bool = False
    paces: Mapping[float, float] = field(default_factory=dict)


class Case(NamedTuple):
    """One branch of the answer: SQL that holds for the machine, the state, and SQL for why."""

    when: str
    state: State
    why: str = "NULL"


def needs_of(table: Mapping[str, Any]) -> dict[str, Need]:
    """The needs by name, from the tables of ``data/support.toml``."""
    groups = table["architecture"]
    shares = {k: v for k, v in table["fp64_pace"].items() if k != "source"}
    paces = {float(k): double / single for k, (double, single) in shares.items()}
    found = {}
    for key, row in table["need"].items():
        fields = {k: v for k, v in row.items() if k not in ("on", "aliases")}
        on = tuple(_reach(reach, groups) for reach in row["on"])
        aliases = tuple(row.get("aliases", ()))
        found[key] = Need(key=key, on=on, aliases=aliases, paces=paces, **fields)
    return found


def _reach(row: Mapping[str, Any], groups: Mapping[str, Sequence[str]]) -> Reach:
    lists = ("targets", "types", "extensions")
    named = tuple(row.get("targets", ()))
    return Reach(
        named=named,
        accelerators=tuple(chip for name in named for chip in groups.get(name, (name,))),
        types=tuple(row.get("types", ())),
        extensions=tuple(row.get("extensions", ())),
        **{k: v for k, v in row.items() if k not in lists},
    )


def chosen(names: Iterable[str], needs: Mapping[str, Need]) -> list[Need]:
    """The needs that people name, each once.

    Raises:
        UsageError: names that there are not, all together, each with the nearest.
    """
    known = {plain(word): need for need in needs.values() for word in (need.key, *need.aliases)}
    words = [word for need in needs.values() for word in (need.key, *need.aliases)]
    found, wrong = {}, []
    for name in names:
        need = known.get(plain(name))
        if need is not None:
            found[need.key] = need
            continue
        near = nearest(name, words)
        meant = f" Did you mean '{near}'?" if near else ""
        wrong.append(f"There is no '{name}' in the support matrix.{meant}")
    if wrong:
        raise UsageError("\n".join(wrong), "underdog support lists all that there is.")
    return list(found.values())


def plain(name: str) -> str:
    """A name without what people spell differently: case, blanks, dots and underscores."""
    return "".join(c for c in name.lower() if c.isalnum())


def on_stack(stack: str) -> str:
    """SQL that holds for machines that a stack reaches; ``cpu`` are those without accelerator."""
    if stack == "cpu":
        return f"NOT {ACCELERATED}"
    return f"contains(',' || replace(software, ' ', '') || ',', {text(f',{stack},')})"


def cases(need: Need) -> list[Case]:
    """The branches of the answer for any machine, in order: the first that holds counts."""
    made = []
    if need.service:
        other = f"{text(f'{need.title} is a part of {need.service}, and this is ')} || "
        other += "coalesce('a machine of ' || service, 'the bare machine')"
        made.append(Case(f"service IS DISTINCT FROM {text(need.service)}", "no", other))
    # most offers have no accelerator: the first question that is put to all of them is that
    made += _without(need)
    made += _rates(need)
    for stack in dict.fromkeys(row.stack for row in need.on if row.stack != "cpu"):
        made += _stack(need, stack, [row for row in need.on if row.stack == stack])
    made.append(Case("coalesce(software, '') = ''", "unknown"))
    elsewhere = f"{_reaches(need)} || {_THIS} || ' is reached by ' || software"
    made.append(Case("TRUE", "no", elsewhere) if need.only else Case("TRUE", "unknown"))
    return made


def _without(need: Need) -> list[Case]:
    rows = [row for row in need.on if row.stack == "cpu"]
    if rows or not need.only:
        return [
            *(_case(need, on_stack("cpu"), row) for row in rows),
            Case(on_stack("cpu"), "unknown"),
        ]
    why = f"{_reaches(need)} || 'this has no accelerator'"
    return [Case(on_stack("cpu"), "no", why)]


def _reaches(need: Need) -> str:
    return text(f"{need.title} reaches {extent(need)}; ")


def _rates(need: Need) -> list[Case]:
    """What the rates say that are known of an accelerator."""
    if need.column is None:
        return []
    known = f"{need.column} > 0"
    if need.pace is None:
        return [Case(known, "yes")]
    share, times = f"{need.column} / fp32_tflops", f"fp32_tflops / {need.column}"
    made = [
        Case(
            f"{known} AND {share} < {need.pace!r}",
            need.slow,
            _slow(times),
        ),
        Case(known, "yes"),
    ]
    for capability, pace in need.paces.items():
        when = f"{on_stack('cuda')} AND abs(compute_capability - {capability!r}) < 0.01"
        slow = pace < need.pace
        why = _slow(repr(1 / pace)) if slow else "NULL"
        made.append(Case(when, need.slow if slow else "yes", why))
    return made


def _slow(times: str) -> str:
    return f"{_THIS} || printf(' computes fp64 at 1/%.0f of its rate of fp32', {times})"


def _stack(need: Need, stack: str, rows: Sequence[Reach]) -> list[Case]:
    here = on_stack(stack)
    made = [_case(need, here, row) for row in rows]
    if all(row.since is None and row.until is None for row in rows):
        return [*made, Case(here, "unknown")]
    made.insert(0, Case(f"{here} AND compute_capability IS NULL", "unknown"))
    why = f"{text(f'{need.title} reaches {_capabilities(rows)}; ')} || {_THIS} || ' has ' || "
    return [*made, Case(here, "no", why + _CAPABILITY)]


def _case(need: Need, here: str, row: Reach) -> Case:
    parts = [here]
    if row.since is not None:
        parts.append(f"compute_capability >= {row.since - 0.01!r}")
    if row.until is not None:
        parts.append(f"compute_capability <= {row.until + 0.01!r}")
    if row.accelerators:
        parts.append(f"accelerator IN ({', '.join(map(text, row.accelerators))})")
    if row.types:
        parts.append(f"instance_type IN ({', '.join(map(text, row.types))})")
    if row.extensions:
        has = (f"contains(',' || cpu_extensions || ',', {text(f',{e},')})" for e in row.extensions)
        parts.append(f"({' OR '.join(has)})")
    note = text(f" ({row.note})") if row.note else "''"
    why = f"{text(f'{need.title} does not reach ')} || {_THIS} || {note}"
    if row.reach != "no":
        why = text(row.note) if row.note else "NULL"
    return Case(" AND ".join(parts), row.reach, why)


def _capabilities(rows: Sequence[Reach]) -> str:
    spans = []
    for row in (r for r in rows if r.reach == "yes"):
        since = f"{row.since or 0:.1f}"
        if row.until is None:
            spans.append(f"{since} and above")
        else:
            spans.append(since if row.since == row.until else f"{since} to {row.until:.1f}")
    return f"compute capability {', '.join(spans)}" if spans else "no compute capability for sure"


def extent(need: Need) -> str:
    """What it reaches, in words: ``compute capability 8.0 to 9.0; rocm: gfx90a, gfx942``."""
    parts = ["accelerators with a known rate of it"] if need.column else []
    for stack in dict.fromkeys(row.stack for row in need.on if row.reach == "yes"):
        rows = [row for row in need.on if row.stack == stack and row.reach == "yes"]
        named = [name for row in rows for name in (*row.named, *row.types, *row.extensions)]
        if any(row.since is not None for row in rows):
            parts.append(_capabilities(rows))
        else:
            where = "machines without accelerator" if stack == "cpu" else stack
            parts.append(f"{where}: {', '.join(named)}" if named else where)
    return "; ".join(parts) or "nothing for sure"


def state_sql(need: Need) -> str:
    """SQL that gives ``yes``, ``no`` or ``unknown`` for an offer."""
    return f"CASE {' '.join(f'WHEN {c.when} THEN {text(c.state)}' for c in cases(need))} END"


def why_sql(need: Need) -> str:
    """SQL for the reason of a no, and for what is to be said besides a yes or an unknown."""
    return f"CASE {' '.join(f'WHEN {c.when} THEN {c.why}' for c in cases(need))} END"


def constraint(need: Need) -> Constraint:
    """Rules out the machines that the need does not reach; an unknown stays a candidate."""
    met = f"{need.title} reaches {extent(need)}"
    # every offer is asked: truth values are compared sooner than texts
    told = " ".join(f"WHEN {case.when} THEN {case.state == 'no'}" for case in cases(need))
    return Constraint(f"needs {need.key}", met, f"CASE {told} END", why_sql(need))
