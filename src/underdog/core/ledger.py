"""The ledger: for every candidate, why it is where it is.

Verdicts: ``best`` (leads among the measured), ``tied`` (measured, not distinguishable from the
best), ``beaten`` (measured, and worse), ``excluded`` (a hard constraint), ``untested`` (nothing
but a test can tell). Each row carries a reason in words, made by one query over all candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from underdog.core.constraints import Constraint, figure, shown, text
from underdog.core.utility import Utility
from underdog.model import UNKNOWN

# as ``Offer.id`` spells it
OFFER_ID = (
    f"CASE WHEN provider = {text(UNKNOWN)} AND coalesce(zone, region) = {text(UNKNOWN)} "
    "AND nodes = 1 AND purchase = 'on-demand' AND term IS NULL "
    "AND NOT contains(instance_type, '/') THEN instance_type ELSE "
    "concat_ws('/', provider, coalesce(zone, region), "
    "CASE WHEN nodes = 1 THEN instance_type "
    "ELSE CAST(CAST(nodes AS BIGINT) AS VARCHAR) || 'x' || instance_type END, "
    "concat_ws(':', purchase, term)) END"
)

_ON_SPOT = (
    "CASE WHEN c.purchase = 'spot' AND s.excluded IS NULL AND s.u IS NOT NULL THEN "
    "printf('; on spot %.0f%% of the paid time is progress', 100 * s.useful) ELSE '' END"
)


@dataclass(frozen=True, slots=True)
class Winner:
    """The best measured offer and its utility."""

    row: int
    shape: int
    machines: int
    name: str
    value: float
    low: float
    high: float


def query(
    constraints: Sequence[Constraint],
    utility: Utility,
    winner: Winner | None,
    *,
    several: bool = True,
    rows: str = "",
    also: Sequence[str] = (),
) -> str:
    """The query that gives ``offer, verdict, cause, reason`` of every candidate.

    Args:
        constraints: in the order in which ``scored`` numbered them.
        winner: the best measured offer, where there is one.
        several: whether an offer stands there with several numbers of machines.
        rows: SQL that limits which candidates are judged, as in ``row = 7``.
        also: more columns, of ``c`` (the candidate) or ``s`` (its scores, with ``row_``).
    """
    more = "".join(f", {column}" for column in also)
    return (
        f"SELECT {OFFER_ID} AS offer, {_verdict(utility, winner)} AS verdict, "
        f"{_cause(constraints)} AS cause, {_reason(constraints, utility, winner)} AS reason{more} "
        "FROM (SELECT * EXCLUDE (shape, machines, purchase, source, price, place), "
        f"shape, machines, source, price FROM ({_stories(utility, several, rows)})) AS s "
        "JOIN candidates AS c ON c.row = s.row_ "
        "LEFT JOIN notes AS n ON n.shape = s.shape ORDER BY offer, c.row"
    )


def funnel(
    constraints: Sequence[Constraint],
    utility: Utility,
    winner: Winner | None,
    *,
    several: bool = True,
) -> str:
    """The query that counts the ledger by verdict and cause, the largest count first."""
    return (
        f"SELECT {_verdict(utility, winner)} AS verdict, {_cause(constraints)} AS cause, "
        f"count(*) AS offers FROM ({_stories(utility, several)}) AS s "
        "GROUP BY ALL ORDER BY offers DESC, verdict, cause"
    )


def _stories(utility: Utility, several: bool, rows: str = "") -> str:
    """One line per offer: with several numbers of machines that of the one that tells most."""
    rank = (
        "excluded IS NULL DESC, source = 'measured' DESC NULLS LAST, doubtful, "
        # in single precision, so that rounding errors do not choose the number of machines
        f"TRY_CAST({-utility.first.sign} * u AS FLOAT) NULLS LAST, machines"
    )
    keep = f" WHERE {rows}" if rows else ""
    one = f" QUALIFY row_number() OVER (PARTITION BY row ORDER BY {rank}) = 1" if several else ""
    return f"SELECT row AS row_, * EXCLUDE (row) FROM scored{keep}{one}"


def _worse(utility: Utility, winner: Winner) -> str:
    """A measured offer that is clearly behind the winner on the leading term."""
    if len(utility.terms) > 1:
        return "TRUE"  # a rule of several terms leaves no ties: the order is the answer
    sign = utility.first.sign
    far = f"u_high < {winner.low!r}" if sign > 0 else f"u_low > {winner.high!r}"
    behind = f"{sign} * u < {sign * winner.value!r} * (1 - {sign * 1e-9!r})"
    return f"CASE WHEN {_same_hardware(winner)} THEN {behind} ELSE {far} END"


def _same_hardware(winner: Winner) -> str:
    return f"s.shape = {winner.shape} AND s.machines = {winner.machines}"


def _verdict(utility: Utility, winner: Winner | None) -> str:
    measured = "source = 'measured' AND u IS NOT NULL"
    cases = ["WHEN excluded IS NOT NULL THEN 'excluded'"]
    if winner is not None:
        cases += [
            f"WHEN s.row_ = {winner.row} THEN 'best'",
            f"WHEN {measured} AND {_worse(utility, winner)} THEN 'beaten'",
            f"WHEN {measured} THEN 'tied'",
        ]
    return f"CASE {' '.join(cases)} ELSE 'untested' END"


def _cause(constraints: Sequence[Constraint]) -> str:
    cases = " ".join(f"WHEN excluded = {i} THEN {text(c.name)}" for i, c in enumerate(constraints))
    return (
        f"CASE {cases} WHEN source IS NULL THEN 'not predicted' WHEN source = 'predicted' "
        "THEN 'predicted' ELSE 'measured' END"
    )


def _reason(constraints: Sequence[Constraint], utility: Utility, winner: Winner | None) -> str:
    note = "coalesce(n.note, '')"
    unit = f" {utility.first.unit}" if utility.first.unit else f" ({utility.first.expression.text})"
    many = "CASE WHEN s.machines > 1 THEN printf(' on %d machines', s.machines::INT) ELSE '' END"
    figures = f"{figure('u')} || ' (' || {figure('u_low')} || '–' || {figure('u_high')} || ')'"
    figures += f" || {text(unit)} || {many}"
    cases = [
        f"WHEN excluded = {i} THEN {text(c.name + ': ')} || {c.reason}"
        for i, c in enumerate(constraints)
    ]
    unknown = text(f"{utility.text} is unknown here, for a column of it is")
    cases.append(f"WHEN source IS NOT NULL AND u IS NULL THEN {unknown}")
    if winner is not None:
        by = text(
            f", against {shown(winner.value)} ({shown(winner.low)}–{shown(winner.high)}){unit} "
            f"measured on {winner.name}"
            + (f", which leads by {utility.describes}" if len(utility.terms) > 1 else "")
        )
        worse = _worse(utility, winner)
        far = f"u_high < {winner.low!r}" if utility.first.sign > 0 else f"u_low > {winner.high!r}"
        cases += [
            f"WHEN s.row_ = {winner.row} THEN 'measured ' || {figures} || "
            "': the best of the measured'",
            f"WHEN source = 'measured' AND {_same_hardware(winner)} THEN 'the same hardware as "
            f"the best, here ' || {figures} || {by}",
            f"WHEN source = 'measured' AND {worse} THEN 'measured ' || {figures} || {by}",
            f"WHEN source = 'measured' THEN 'measured ' || {figures} || "
            f"{text(', not distinguishable from the best')} || {by}",
            f"WHEN source = 'predicted' AND {far} THEN 'not tested; predicted ' || {figures} || "
            f"', even at best' || {by} || {note}",
        ]
    doubts = "', predicted to miss a limit, though not in its best case'"
    cases.append(f"WHEN doubtful THEN 'not tested; predicted ' || {figures} || {doubts} || {note}")
    cases.append(f"WHEN source = 'predicted' THEN 'not tested; predicted ' || {figures} || {note}")
    nothing = text("not tested, and not predicted: too little is known of its hardware")
    return f"CASE {' '.join(cases)} ELSE {nothing} || {note} END || {_ON_SPOT}"
