"""What a workload needs, for choosing: what it rules out, and the doubts about what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from underdog.catalog import support as matrix
from underdog.core import builds
from underdog.core.builds import Build
from underdog.core.choosing import Choice, Request
from underdog.core.constraints import text
from underdog.core.evidence import gather
from underdog.core.support import COLUMNS, Need, chosen, plain, state_sql, why_sql
from underdog.core.table import Table
from underdog.errors import UsageError
from underdog.model import Caveat, Trial

Ranking = Sequence[Mapping[str, Any]]


class Asked(TypedDict):
    """The fields of a request that this fills."""

    needs: Sequence[Need]
    pinned: Sequence[Build]


def asked(names: Sequence[str]) -> Asked:
    """What of a request the names stand for.

    Args:
        names: of the support matrix; ``recorded-software`` stands for the framework's version
            with which the trials ran.

    Raises:
        UsageError: names that there are not, all together, each with the nearest.
    """
    others = [name for name in names if plain(name) != plain(builds.RECORDED)]
    pinned = matrix.builds() if len(others) < len(names) else ()
    return {"needs": chosen(others, matrix.needs()), "pinned": pinned}


def check(table: Table, request: Request, trials: Sequence[Trial]) -> None:
    """Raise where the one machine of a table is out by what a request needs.

    Raises:
        UsageError: it is; every reason is told.
    """
    made = builds.needed(request.needs, request.pinned, gather(trials))
    found = [table.run(f"SELECT {c.reason} FROM offers WHERE {c.out}").fetchone() for c in made]
    reasons = [row[0] for row in found if row is not None]
    if reasons:
        listed = "\n".join(f"  {reason}" for reason in reasons)
        raise UsageError(
            f"This machine has not what the workload needs.\n{listed}",
            "Name machines that have it, --offers FILE; underdog support lists what reaches them.",
        )


def caveats(choice: Choice, trials: Sequence[Trial], ranking: Ranking) -> list[Caveat]:
    """What the ranking's machines leave open of the needs, and what the recorded software does."""
    if not ranking:
        return []
    _lay_out(choice, ranking)
    found = []
    for need in choice.request.needs:
        found += _of_need(choice, need)
        found += [
            Caveat(
                code="software_too_old",
                message=words,
                remedy=f"Update it, and measure again: underdog support {need.key}.",
            )
            for words in builds.too_old(need, trials)
        ]
    return found + _of_builds(choice, trials)


def _lay_out(choice: Choice, ranking: Ranking) -> None:
    """The table ``kinds``: the hardware of the candidates of the ranking's kinds of machine."""
    kinds = {(entry["offer"]["provider"], entry["offer"]["instance_type"]) for entry in ranking}
    rows = ", ".join(f"({text(provider)}, {text(kind)})" for provider, kind in sorted(kinds))
    names = ", ".join(text(kind) for kind in sorted({kind for _, kind in kinds}))
    choice.table.run(
        f"CREATE OR REPLACE TEMP TABLE kinds AS SELECT DISTINCT {', '.join(COLUMNS)} "
        "FROM candidates "
        f"WHERE instance_type IN ({names}) AND (provider, instance_type) IN ({rows})"
    )


def _of_need(choice: Choice, need: Need) -> list[Caveat]:
    named = "coalesce(accelerator, instance_type)"
    found = choice.table.run(
        f"SELECT state, why, string_agg(DISTINCT name, ', ' ORDER BY name) FROM (SELECT "
        f"{state_sql(need)} AS state, {why_sql(need)} AS why, {named} AS name FROM kinds) "
        "WHERE state = 'unknown' OR (state = 'yes' AND why IS NOT NULL) "
        "GROUP BY ALL ORDER BY state, why"
    ).fetchall()
    made = []
    for state, why, machines in found:
        if state == "yes":
            made.append(Caveat(code="support_limited", message=f"{why}.", remedy="Measure there."))
            continue
        message = f"It is not known whether {need.title} reaches {machines}"
        message += f" ({why})." if why else "."
        remedy = f"Try it there; underdog support {need.key} has what the sources say."
        made.append(Caveat(code="support_unknown", message=message, remedy=remedy))
    return made


def _of_builds(choice: Choice, trials: Sequence[Trial]) -> list[Caveat]:
    out, ran = builds.unreached_sql(trials, matrix.builds()), builds.recorded(trials)
    words = " and ".join(one.words for one in ran) or "the software, of which nothing is recorded,"
    if out is None and choice.request.pinned:
        return [
            Caveat(
                code="support_unknown",
                message=f"It is not known what {words} has code for, so --needs {builds.RECORDED} "
                "rules nothing out.",
                remedy="Check it by hand for the machine that is chosen.",
            )
        ]
    if out is None or choice.request.pinned:
        return []
    found = choice.table.run(
        "SELECT compute_capability, string_agg(DISTINCT accelerator, ', ' ORDER BY accelerator) "
        f"FROM kinds WHERE {out} GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    return [
        Caveat(
            code="software_does_not_reach",
            message=f"{words}, with which it was measured, has no code for {machines} (compute "
            f"capability {capability:.1f}).",
            remedy=f"{builds.remedy(ran[0], capability, matrix.builds())} To leave such "
            f"machines out: --needs {builds.RECORDED}.",
        )
        for capability, machines in found
    ]
