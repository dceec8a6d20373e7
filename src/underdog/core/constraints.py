"""Hard constraints: what rules an offer out before any ranking.

Only what clearly cannot work, or what the user forbade. Each constraint is a condition in SQL
that holds for offers that are out, and a text in SQL that says why with the figures. An unknown
fact rules nothing out, except under ``--where``, which an unknown never satisfies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from underdog.core.evidence import Evidence, accelerator_unused
from underdog.core.expression import Expression
from underdog.model import Profile, Trial
from underdog.units import GIB

# stacks that a framework's unmodified script reaches; others need changes to the script
FRAMEWORK_STACKS = {
    "torch": ("cuda", "rocm"),
    "pytorch": ("cuda", "rocm"),
    "jax": ("cuda", "rocm", "tpu", "xla"),
    "keras": ("cuda", "rocm", "tpu", "xla"),
    "tensorflow": ("cuda", "rocm", "tpu", "xla"),
}
# the CUDA compute capability from which a chip has units for the format (CUDA C++ Programming
# Guide, "Features and Technical Specifications"); of other chips it is left open
UNITS_SINCE = {"bfloat16": 8.0, "float8": 8.9}
_EACH = "coalesce(accelerator_usable_gib, accelerator_memory_gib)"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint: its name for counts, its words, and the two SQL texts.

    ``met`` is how people read it in a decision; ``out`` is true for offers that it rules out;
    ``reason`` gives the text for one such offer.
    """

    name: str
    met: str
    out: str
    reason: str


def text(value: str) -> str:
    """A SQL string literal."""
    return "'" + value.replace("'", "''") + "'"


def shown(value: float) -> str:
    """A number for people, as ``figure`` writes it."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def figure(sql: str) -> str:
    """A SQL expression that writes a number for people."""
    return (
        f"CASE WHEN abs({sql}) >= 1000 AND abs({sql}) < 1e15 "
        f"THEN format('{{:,}}', CAST(round({sql}) AS BIGINT)) ELSE printf('%.4g', {sql}) END"
    )


def where(expression: Expression) -> Constraint:
    """The user's own condition; an unknown does not satisfy it."""
    facts = " || ', ' || ".join(
        f"{text(name + ' is ')} || coalesce(CAST(\"{name}\" AS VARCHAR), 'unknown')"
        for name in expression.columns
    )
    said = text(f"not {expression.text}")
    reason = f"{said} || ': ' || {facts}" if facts else said
    out = f"NOT coalesce({expression.sql}, FALSE)"
    return Constraint("where", expression.text, out, reason)


def purchase(options: Sequence[str]) -> Constraint:
    """Only these purchase options."""
    listed = ", ".join(text(option) for option in options)
    wanted = " or ".join(options)
    met = f"purchase is {wanted}"
    reason = f"'sold as ' || concat_ws(':', purchase, term) || {text(f', not {wanted}')}"
    return Constraint("purchase", met, f"purchase NOT IN ({listed})", reason)


def from_trials(evidence: Sequence[Evidence], stacks: Sequence[str] | None) -> list[Constraint]:
    """What the trials say the workload cannot do without.

    Args:
        evidence: of the workload, all shapes.
        stacks: software stacks that the workload can run on; None for what its framework reaches.
    """
    trials = [trial for found in evidence for trial in found.trials]
    profiles = [trial.profile for trial in trials if trial.profile is not None]
    return [
        *_memory(trials, profiles),
        *_out_of_memory(evidence),
        *_number_format(profiles),
        *_software(trials, stacks),
    ]


def _memory(trials: Sequence[Trial], profiles: Sequence[Profile]) -> list[Constraint]:
    found = []
    peaks = [(t.peak_memory_gib.get("accelerator"), t) for t in trials if not accelerator_unused(t)]
    known = [(peak, trial) for peak, trial in peaks if peak]
    needs = [size for size in map(resident_gib, profiles) if size]
    if known:
        peak, trial = min(known, key=lambda pair: pair[0])
        used = max(1, (trial.profile and trial.profile.accelerators_used) or 1)
        found.append(_accelerator_memory(peak, used, "measured"))
    elif needs:
        found.append(_accelerator_memory(min(needs), 1, "predicted from the profile"))
    for accelerated, kind in ((False, "accelerator_count = 0"), (True, "accelerator_count > 0")):
        host = [t.peak_memory_gib.get("host") for t in trials if _on_accelerator(t) is accelerated]
        sizes = [size for size in host if size]
        if sizes:
            found.append(_host_memory(min(sizes), kind, "measured"))
        elif needs and not accelerated:
            # what training holds at once must be in memory somewhere
            found.append(_host_memory(min(needs), kind, "predicted from the profile"))
    return found


def _on_accelerator(trial: Trial) -> bool:
    return bool(trial.machine.accelerators) or bool(
        trial.offer and trial.offer.accelerator_count > 0
    )


def resident_gib(profile: Profile) -> float | None:
    """The least memory that training holds at once, in GiB; None where the parts are unknown."""
    parts = (profile.parameter_bytes, profile.gradient_bytes, profile.optimizer_bytes)
    if any(part is None for part in parts):
        return None
    total = sum(part for part in parts if part is not None) + (profile.activation_bytes or 0)
    return total / GIB


def _accelerator_memory(peak: float, used: int, origin: str) -> Constraint:
    # a job spread over several accelerators is compared by their total, else by each
    room = f"{_EACH} * greatest(accelerator_count, 1)" if used > 1 else _EACH
    need = peak * used
    unit = "in all" if used > 1 else "on one accelerator"
    reason = (
        f"{text(f'needs {need:.4g} GiB {unit} ({origin}), ')} || accelerator || ' has ' || "
        f"{figure(room)} || ' GiB usable'"
    )
    met = f"{need:.3g} GiB of accelerator memory {unit} ({origin})"
    return Constraint("memory", met, f"accelerator_count > 0 AND {room} < {need!r}", reason)


def _host_memory(peak: float, kind: str, origin: str) -> Constraint:
    reason = f"{text(f'needs {peak:.4g} GiB of host memory ({origin}), has ')} || " + (
        f"{figure('memory_gib')} || ' GiB'"
    )
    whose = "with an" if ">" in kind else "without"
    met = f"{peak:.3g} GiB of host memory on machines {whose} accelerator ({origin})"
    return Constraint("memory", met, f"{kind} AND memory_gib < {peak!r}", reason)


def _out_of_memory(evidence: Sequence[Evidence]) -> list[Constraint]:
    """Machines on which it ran out of memory, and those of the same kind with no more of it."""
    constraints = []
    for found in evidence:
        if not found.out_of_memory:
            continue
        provider, name, nodes = found.shape
        own = f"provider = {text(provider)} AND instance_type = {text(name)} AND nodes = {nodes}"
        count, each, host = (_fact(own, sql) for sql in ("accelerator_count", _EACH, "memory_gib"))
        # a machine on which it ran fits, whatever ran out elsewhere
        smaller = (
            f"source IS DISTINCT FROM 'measured' AND ("
            f"({count} > 0 AND accelerator_count > 0 AND accelerator_count <= {count} "
            f"AND {_EACH} <= {each}) "
            f"OR ({count} = 0 AND accelerator_count = 0 AND memory_gib <= {host}))"
        )
        ran_out = text(f"it ran out of memory on {name}")
        reason = (
            f"CASE WHEN {own} THEN 'it ran out of memory when tried' "
            f"ELSE {ran_out} || ', and this has no more memory' END"
        )
        met = f"more memory than {name}, where it ran out"
        constraints.append(Constraint("memory", met, f"({own}) OR ({smaller})", reason))
    return constraints


def _fact(own: str, sql: str) -> str:
    """A fact of the machine itself, looked up, so that a trial need not carry it."""
    return f"(SELECT max({sql}) FROM candidates WHERE {own})"


def _number_format(profiles: Sequence[Profile]) -> list[Constraint]:
    formats = {profile.number_format for profile in profiles}
    if len(formats) != 1:
        return []
    name = formats.pop() or ""
    if name not in UNITS_SINCE:
        return []
    since = UNITS_SINCE[name]
    out = f"accelerator_count > 0 AND compute_capability < {since}"
    reason = (
        f"{text(f'the workload computes in {name}, from compute capability {since} on; ')} "
        "|| accelerator || ' has ' || printf('%.1f', compute_capability)"
    )
    return [Constraint("number format", f"units for {name} on the accelerator", out, reason)]


def _software(trials: Sequence[Trial], stacks: Sequence[str] | None) -> list[Constraint]:
    if stacks is None:
        frameworks = {(trial.software.framework or "").lower() for trial in trials}
        if len(frameworks) != 1:
            return []
        framework = frameworks.pop()
        if framework not in FRAMEWORK_STACKS:
            return []
        stacks, because = FRAMEWORK_STACKS[framework], f"an unchanged {framework} script"
    else:
        because = "the workload"
    listed = " or ".join(stacks)
    reached = " OR ".join(
        f"list_contains(string_split(replace(software, ' ', ''), ','), {text(stack)})"
        for stack in stacks
    )
    out = f"accelerator_count > 0 AND software IS NOT NULL AND software <> '' AND NOT ({reached})"
    reason = (
        f"{text(f'{because} needs {listed}, and ')} || accelerator || ' is reached by ' || software"
    )
    return [Constraint("software", f"accelerators are reached by {listed}", out, reason)]


def price_known(utility_text: str) -> Constraint:
    """Without a price there is no cost, so a utility of cost cannot rank the offer."""
    reason = (
        f"coalesce(price_unknown_reason, 'no reason given') || "
        f"{text(f'; it cannot be ranked by {utility_text}')}"
    )
    return Constraint("price unknown", "the price is known", "price_per_hour IS NULL", reason)


def limit(name: str, column: str, amount: float, unit: str) -> Constraint:
    """A deadline or a budget on ``column``, whose best end is ``{column}_best``.

    A measured offer must keep it; a predicted one is out only where even its best case misses.
    """
    judged = f"CASE WHEN source = 'measured' THEN {column} ELSE {column}_best END"
    reason = (
        f"CASE WHEN source = 'measured' THEN 'takes ' ELSE 'takes at least ' END || "
        f"{figure(judged)} || {text(f' {unit}, the {name} is {amount:.4g} {unit}')}"
    )
    met = f"{name} of {amount:.4g} {unit}"
    return Constraint(name, met, f"coalesce({judged} > {amount!r}, FALSE)", reason)


def doubtful(column: str, amount: float) -> str:
    """SQL that holds for predicted offers that miss a limit, yet not in their best case."""
    return f"(source = 'predicted' AND coalesce({column} > {amount!r}, FALSE))"
