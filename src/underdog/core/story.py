"""The story of one offer in prose: what it is, where it stands, and why."""

from __future__ import annotations

from typing import Any

from underdog.core.choosing import Choice
from underdog.core.evidence import Evidence
from underdog.core.ledger import OFFER_ID
from underdog.errors import UsageError, did_you_mean, nearest

_VERDICTS = {
    "best": "It is the best of the measured offers.",
    "tied": "It was measured and cannot be told from the best.",
    "beaten": "It was measured and is beaten.",
    "excluded": "It is ruled out.",
    "untested": "",  # the reason says it
}


def tell(choice: Choice, offer: str) -> str:
    """The story of an offer, called by its full name or by its instance type.

    Of an instance type the offer that ranks best is told, else the cheapest.

    Raises:
        UsageError: no candidate is called so; the message names the nearest.
    """
    row = _find(choice, offer)
    line = choice.ledger(f"row = {row['row']}")[0]
    paragraphs = [f"{line['offer']}: {_machine(row)}"]
    paragraphs.append(f"{_VERDICTS[line['verdict']]} {_sentence(line['reason'])}".strip())
    if row["caveats"]:
        rules = ", ".join(row["caveats"].split(","))
        paragraphs.append(f"The catalog doubts it: {rules} (docs/reference/quality.md).")
    tried = [e for e in choice.evidence if _same(e, row)]
    paragraphs += [text for text in map(_trials, tried) if text]
    if line["verdict"] == "untested" and choice.winner is not None:
        paragraphs.append("Only a test can tell: underdog measure on that machine, then choose.")
    others = row["regions"] - 1
    if others > 0:
        paragraphs.append(f"The same machine is sold at {others:,} more places or terms.")
    return "\n\n".join(paragraphs)


def _find(choice: Choice, offer: str) -> dict[str, Any]:
    text = offer.strip()
    sql = (
        "SELECT c.row, c.provider, c.instance_type, c.nodes, c.vcpus, c.memory_gib, "
        "c.accelerator, c.accelerator_count, c.accelerator_memory_gib, c.price_per_hour, "
        "c.price_unknown_reason, c.caveats, (SELECT count(*) FROM candidates AS d "
        "WHERE d.provider = c.provider AND d.instance_type = c.instance_type "
        "AND d.nodes = c.nodes) AS regions "
        f"FROM (SELECT *, {OFFER_ID} AS offer FROM candidates) AS c "
        "LEFT JOIN scored AS s ON s.row = c.row "
        "WHERE lower(c.offer) = lower($name) OR lower(c.instance_type) = lower($name) "
        f"ORDER BY s.excluded IS NULL DESC, {-choice.request.utility.first.sign} * s.u NULLS LAST, "
        "c.price_per_hour NULLS LAST, c.offer LIMIT 1"
    )
    found = choice.table.connection.execute(sql, {"name": text})
    values = found.fetchone()
    if values is None:
        raise UsageError(f"There is no offer '{offer}' to explain.", _hint(choice, text))
    return dict(zip((d[0] for d in found.description or ()), values, strict=True))


def _hint(choice: Choice, text: str) -> str:
    types = {shape.instance_type for shape in choice.shapes.names}
    parts = text.split("/")
    kind = parts[2] if len(parts) > 2 else text
    near = nearest(kind, types)
    if near is None:
        return "underdog offers lists them; an instance type is enough, as in g5.xlarge."
    if len(parts) <= 2:
        return did_you_mean(kind, types)
    # the machine is known: the mistake is in the rest of the name
    rows = choice.table.connection.execute(
        f"SELECT {OFFER_ID} FROM candidates WHERE instance_type = $name", {"name": near}
    ).fetchall()
    return did_you_mean(text, (row[0] for row in rows))


def _machine(row: dict[str, Any]) -> str:
    parts = []
    if row["accelerator_count"]:
        memory = row["accelerator_memory_gib"]
        each = f" of {memory:g} GiB" if memory else ""
        parts.append(f"{row['accelerator_count']:g} × {row['accelerator']}{each}")
    if row["vcpus"]:
        parts.append(f"{row['vcpus']:g} vCPUs")
    if row["memory_gib"]:
        parts.append(f"{row['memory_gib']:g} GiB of memory")
    price = row["price_per_hour"]
    known = f"${price:,.4g} an hour" if price else f"price unknown ({row['price_unknown_reason']})"
    return ", ".join([*parts, known]) + "."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _same(evidence: Evidence, row: dict[str, Any]) -> bool:
    return tuple(evidence.shape) == (row["provider"], row["instance_type"], int(row["nodes"]))


def _trials(evidence: Evidence) -> str:
    parts = []
    if evidence.estimate is not None:
        rate, count = evidence.estimate, len(evidence.trials)
        trials = "one trial" if count == 1 else f"{count} trials"
        knobs = ", ".join(f"{name} {value}" for name, value in evidence.knobs.items())
        with_knobs = f" with {knobs}" if knobs else ""
        parts.append(
            f"Measured in {trials}{with_knobs}: {rate.value:,.4g} samples/s "
            f"({rate.low:,.4g}–{rate.high:,.4g}); {evidence.trials[-1].id} is the latest."
        )
    faults = dict.fromkeys(evidence.faults)  # each once
    parts += [f"Of a trial that does not count: {fault}." for fault in faults]
    return " ".join(parts)
