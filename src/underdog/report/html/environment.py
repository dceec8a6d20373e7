"""The templates' environment: every text is escaped, figures are written as everywhere else."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from underdog.core.views.facts import PHASE_NAMES, STATUS_WORDS
from underdog.core.views.records import DecisionView, Point, Range, StudyView
from underdog.core.views.words import finite, gain_words, plain, plural
from underdog.errors import MissingPackageError
from underdog.units import format_seconds

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment
    from markupsafe import Markup


def environment(*loaders: BaseLoader) -> Environment:
    """An environment with the templates of this package and those of more loaders before them.

    Raises:
        MissingPackageError: Jinja is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise MissingPackageError("a page", "jinja2", "report") from error
    from underdog.report.html.packed import columns, data

    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([*loaders, jinja2.PackageLoader(__package__)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["data"] = data
    made.filters |= {
        "breakable": breakable,
        "columns": columns,
        "compact": compact,
        "day": day,
        "doubts": doubts,
        "duration": format_seconds,
        "gain": gain,
        "layers": layers,
        "machine": machine,
        "many": many,
        "moment": moment,
        "money": money,
        "plain": number,
        "preferences": preferences,
        "rankable": rankable,
        "searched": searched,
        "share": share,
        "shares": shares,
        "shell": shlex.join,
        "where": where,
        "words": lambda status: STATUS_WORDS.get(status, status),
    }
    return made


def number(value: Any, digits: int = 3) -> str:
    """A number with so many digits; what is none is unknown."""
    found = finite(value)
    return "unknown" if found is None else plain(found, digits)


def compact(value: Any, digits: int = 3) -> str:
    """A number for a table: millions and more by a letter, as in ``7.78 M``."""
    found = finite(value)
    if found is not None:
        for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
            if scale * 0.9995 <= abs(found) < 1e15:
                return f"{plain(found / scale, digits)}\u00a0{letter}"
    return number(value, digits)


def money(value: Any) -> str:
    """Dollars with cents where cents matter."""
    found = finite(value)
    if found is not None and 0.1 <= found < 100:
        return f"{found:.2f}"
    return number(value, 2 if found is not None and 0 < found < 0.1 else 3)


def share(value: Any) -> str:
    """A share in percent: ``0.4 %``, ``12 %``."""
    found = finite(value)
    if found is None:
        return "unknown"
    percent = 100 * found
    return f"{percent:.1f} %" if 0 < abs(percent) < 9.95 else f"{percent:,.0f} %"


def gain(value: Any) -> str:
    """How much better, by a share: ``12 % better``, ``33 times as good``."""
    found = finite(value)
    return "unknown" if found is None else gain_words(found)


def breakable(name: str) -> Markup:
    """A name that may go on in the next line after a slash."""
    from markupsafe import Markup

    return Markup("/<wbr>").join(name.split("/"))


def shares(phases: Mapping[str, float]) -> list[tuple[str, str]]:
    """Where the time goes, in words."""
    return [(PHASE_NAMES.get(name, name), share(part)) for name, part in phases.items()]


def day(text: str) -> str:
    """``30 November 2026`` of a day or a time in ISO 8601; anything else as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{at.day}\u00a0{at:%B\u00a0%Y}"


def moment(text: str) -> str:
    """``30 November 2026, 16:53 UTC`` of a time in ISO 8601; anything else as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    at = at.astimezone(UTC) if at.tzinfo else at
    return f"{at.day}\u00a0{at:%B\u00a0%Y, %H:%M\u00a0}UTC"


def many(entry: Mapping[str, Any]) -> str:
    """An offer, with how many of it where it is not one."""
    return f"{entry['nodes']} × {entry['offer']}" if entry["nodes"] > 1 else str(entry["offer"])


def machine(point: Point) -> str:
    """The machine of a candidate, with how many of it where it is not one."""
    name = point.instance_type or point.offer
    return f"{point.nodes} × {name}" if point.nodes > 1 else name


def where(point: Point) -> list[str]:
    """What is in the machine, where it is sold and how it is paid."""
    place = " ".join(filter(None, (point.provider, point.region)))
    held = f"{point.accelerator_count:g} × {point.accelerator}" if point.accelerator else ""
    if not held and point.vcpus:
        held = f"{point.vcpus:g} vCPU"
    words = (held, place, point.purchase)
    return [word for word in words if word]


def doubts(point: Point) -> list[str]:
    """What is doubted of an offer: the names of its caveats, as words."""
    return [name.replace("_", " ") for name in point.caveats]


def rankable(decision: DecisionView) -> list[Point]:
    """The points of the table: those that are ranked, and those that could be."""
    return [
        point
        for point in decision.points
        if point.verdict != "excluded" and (point.rank is not None or _weighable(point))
    ]


def _weighable(point: Point) -> bool:
    return point.hours is not None and point.dollars is not None


def preferences(decision: DecisionView) -> dict[str, Any]:
    """What the page ranks anew by: hours and dollars of each row of the table."""
    return {
        "samples": decision.samples,
        "better": decision.better,
        "unit": decision.unit or "Utility",
        "rows": [
            {
                "name": point.offer,
                "machine": machine(point),
                "where": where(point),
                "doubts": doubts(point),
                "rank": point.rank,
                "source": point.source,
                "price": point.price_per_hour,
                "hours": _ends(point.hours),
                "dollars": _ends(point.dollars),
                "utility": _ends(point.utility),
            }
            for point in rankable(decision)
        ],
    }


def _ends(found: Range | None) -> list[float | None] | None:
    if found is None:
        return None
    ends = map(finite, (found.value, found.low, found.high))
    return [None if end is None else float(f"{end:.6g}") for end in ends]


def searched(study: StudyView) -> str:
    """How far a search came, in a sentence or two."""
    tests = plural(sum(test.number > 0 for test in study.tests), "test")
    if study.running:
        return f"The search is running: {tests} so far."
    return f"{tests}. {study.ended}" if study.ended else f"{tests}."


def layers(services: Mapping[str, Any]) -> Sequence[str]:
    """What the work costs by layer of service, a sentence each."""
    from underdog.report.services import sentences

    per = " a month" if services["hours"] else ""
    costs = [
        f"{layer['name']}: ${number(layer['cost']['value'])}{per}, {layer['source']}"
        for layer in services["layers"]
    ]
    return [*costs, *sentences(services, number)]
