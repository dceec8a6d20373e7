"""What a person sees of a decision, and its ranking as CSV and Markdown."""

from __future__ import annotations

import csv
import dataclasses
import io
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from underdog.core.metrics import METRICS
from underdog.model import Decision
from underdog.report import plans, ranking, services, supply
from underdog.report.measurement import shown
from underdog.report.ranking import MEASURED, PREDICTED, machine_name

_JOB_METRICS = ("hours_to_train", "dollars_to_train")
_CAUSES = {
    ("untested", "predicted"): "untested, predicted",
    ("untested", "untested"): "untested",
    ("untested", "measured"): "untested, unknown utility",
    ("untested", "not predicted"): "untested, too little known to predict",
    ("beaten", "measured"): "beaten by a measurement",
    ("tied", "measured"): "measured, not distinguishable from the best",
    ("best", "measured"): "the best of the measured",
}


def number(value: float, digits: int = 3) -> str:
    """A number for people: a few digits, and k, M, G or T for thousands of them."""
    size = abs(value)
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if scale <= size < 1e15:
            return f"{_plain(value / scale, digits)}{unit}"
    if value == 0 or 1e-4 <= size < 1e3:
        return _plain(value, digits)
    return f"{value:.{digits - 1}e}"


def _plain(value: float, digits: int) -> str:
    # 123 is not written as 1.2e+02
    return f"{value:.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:.{digits}g}"


def interval(metric: dict[str, float] | None, predicted: bool) -> str:
    """A value with its interval; a predicted one is marked by ``~`` and has fewer digits."""
    if metric is None:
        return "unknown"
    about, digits = ("~", 2) if predicted else ("", 3)
    value, low, high = (number(metric[end], digits) for end in ("value", "low", "high"))
    return f"{about}{value} ({low}–{high})"


def decision_report(
    decision: Decision, width: int = 120, *, explained: bool = True
) -> RenderableType:
    """Everything worth a look about a decision, for a terminal of that width.

    Args:
        explained: its trials are in the store, so that ``choose --explain`` can be asked.
    """
    decision = harmless(decision)
    parts: list[RenderableType] = [headline(decision)]
    if decision.ranking:
        parts += [Text(""), ranking_table(decision, width), _legend(decision)]
    if len(decision.fallback) > 1:
        parts += [Text(""), supply.fallback(decision.fallback)]
    if decision.plans:
        parts += [Text(""), plans.first(decision.plans, number)]
    if decision.test_next:
        parts += [Text(""), _test_next(decision)]
    if decision.services:
        parts += [Text(""), services.compared(decision.services, number)]
    parts += [Text(""), _funnel(decision)]
    if decision.caveats:
        parts += [Text(""), *caveat_lines(decision)]
    parts += [Text(""), _footing(decision, explained)]
    return Group(*parts)


def caveat_lines(decision: Decision) -> list[Text]:
    """The first caveats, and how many more there are."""
    lines = [
        Text(f"! {caveat.message} {caveat.remedy}", style="yellow")
        for caveat in decision.caveats[:5]
    ]
    more = len(decision.caveats) - 5
    if more > 0:
        lines.append(Text(f"! and {more} more caveats in --json", style="yellow"))
    return lines


def harmless(value: Any) -> Any:
    """A decision, or a part of one, with what a terminal would obey in its texts spelled out."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list):
        return [harmless(item) for item in value]
    if isinstance(value, dict):
        return {name: harmless(item) for name, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: harmless(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **parts)
    return value


def headline(decision: Decision) -> Text:
    """The answer in a few lines: what is known, and what might be better."""
    text = Text()
    best = next((e for e in decision.ranking if e["offer"]["id"] == decision.best_measured), None)
    if not decision.ranking:
        asked = bool(decision.constraints)
        what = "No offer meets the constraints." if asked else "No offer can be ranked yet."
        text.append(what, style="bold red")
        text.append(f"\n{nearest_miss(decision)}")
        return text
    if best is None:
        text.append("No machine that was measured can be ranked here; ", style="bold")
        text.append("all below is predicted.")
    else:
        text.append_text(_best(decision, best))
    better = _maybe_better(decision, best)
    if better:
        text.append("\nCould be better, untested: ", style="bold")
        text.append(f"{', '.join(better)}.", style="dim")
    return text


def _best(decision: Decision, best: dict[str, Any]) -> Text:
    measured = {e["offer"]["id"] for e in decision.ranking if e["source"] == "measured"}
    tied = [name for name in best["tied_with"] if name in measured]
    unit = _unit(decision)
    text = Text()
    if tied:
        text.append("Not distinguishable: ", style="bold yellow")
        text.append(f"{best['offer']['id']} and {', '.join(tied[:3])}")
        text.append(f" and {len(tied) - 3} more" if len(tied) > 3 else "")
        text.append(": their intervals overlap. More or longer trials would tell them apart.")
        return text
    text.append("Best measured: ", style="bold green")
    text.append(machine_name(best), style="bold")
    price = best["offer"]["price_per_hour"]
    where = f"{best['offer']['zone'] or best['offer']['region']}, {best['offer']['purchase']}"
    cost = f", ${number(price)} an hour" if price else ""
    text.append(f" ({where}{cost}): {interval(best['utility'], False)} {unit}")
    return text


def _maybe_better(decision: Decision, best: dict[str, Any] | None) -> list[str]:
    """Predicted offers whose middle value is better than the best measured."""
    if best is None:
        return []
    sign = 1 if decision.better == "higher" else -1
    bar = sign * best["utility"]["value"]
    guesses = [e for e in decision.ranking if e["source"] != "measured"]
    ahead = [machine_name(e) for e in guesses if sign * e["utility"]["value"] > bar]
    return list(dict.fromkeys(ahead))[:3]


def nearest_miss(decision: Decision) -> str:
    """Which constraint took the most offers."""
    out = [line for line in decision.funnel if line["verdict"] == "excluded"]
    if not out:
        return "No offer could be predicted from what was measured; measure one of them."
    first = out[0]
    said = next((c for c in decision.constraints if c.startswith(f"{first['cause']}:")), "")
    return f"{first['offers']:,} of {decision.candidates:,} are out by {said or first['cause']}."


def ranking_table(decision: Decision, width: int) -> Table:
    """The ranking; predicted offers are dim and carry a hollow mark."""
    metrics = [ranking.Metric(name, _title(decision, name)) for name in _columns(decision)]
    return ranking.table(decision.ranking, metrics, interval, number, width)


def _columns(decision: Decision) -> list[str]:
    """The utility, then the metrics that explain it."""
    others = ["samples_per_second", *_JOB_METRICS]
    known = [n for n in others if any(e.get(n) is not None for e in decision.ranking)]
    return ["utility", *(name for name in known if name != decision.utility)][:2]


def _title(decision: Decision, name: str) -> str:
    if name != "utility":
        return METRICS[name].unit
    return _unit(decision) or "utility"


def _unit(decision: Decision) -> str:
    first = decision.utility.split(",")[0].strip()
    if first in METRICS:
        return METRICS[first].unit
    return decision.utility if len(decision.utility) <= 24 else "utility"


def _legend(decision: Decision) -> Text:
    parts = [f"{MEASURED} measured"]
    if any(e["source"] != "measured" for e in decision.ranking):
        parts.append(f"{PREDICTED} predicted (~)")
    parts.append("(95 % interval)")
    if any(e["pareto"] for e in decision.ranking):
        parts.append("◆ nothing is both faster and cheaper")
    if any(e["offer"].get("caveats") for e in decision.ranking):
        parts.append("! doubted, see below")
    if any(e["other_regions"] for e in decision.ranking):
        parts.append("+N other regions")
    return Text("   ".join(parts), style="dim")


def _test_next(decision: Decision) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2), show_header=False)
    # names are there to be pasted: they fold, and are never cut
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for entry in decision.test_next:
        cost = entry["dollars"]
        table.add_row(
            Text(_many(entry)),
            Text(_gain(entry["expected_gain"])),
            Text(f"{entry['minutes']:g} min, " + (f"${number(cost)}" if cost else "price unknown")),
        )
    return Group(_bar(decision), Padding(table, (0, 0, 0, 2), expand=False))


def _bar(decision: Decision) -> Text:
    """The title of what to test next, with what the gain is counted against."""
    against = decision.test_next[0]["against"]
    name, value = _many(against), f"{number(against['value'])} {_unit(decision)}"
    if against["source"] == "measured":
        said = f"keeping the better one gains on average, over the {value} measured on {name}"
    else:
        said = (
            f"no measured machine can be ranked, so the gain is on average over the {value} that "
            f"{name} gives at the bad end of its prediction"
        )
    return Text("Test next: ", style="bold").append(f"{said}:", style="not bold")


def _many(entry: dict[str, Any]) -> str:
    return f"{entry['nodes']} × {entry['offer']}" if entry["nodes"] > 1 else str(entry["offer"])


def _gain(gain: float) -> str:
    if gain < 1:
        return f"expected {gain:.0%} better"
    return f"expected {number(1 + gain, 2)} times as good"


def cause_words(verdict: str, cause: str) -> str:
    """A verdict and its cause in words."""
    return _CAUSES.get((verdict, cause), f"out: {cause}")


def _funnel(decision: Decision) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2), show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for line in decision.funnel:
        table.add_row(
            Text(f"{line['offers']:,}"), Text(cause_words(line["verdict"], line["cause"]))
        )
    title = f"{decision.candidates:,} candidates"
    return Group(Text(title, style="bold"), Padding(table, (0, 0, 0, 2), expand=False))


def _footing(decision: Decision, explained: bool) -> Text:
    more = " underdog choose --explain OFFER tells why an offer is where it is."
    return Text(
        f"Workload {decision.workload}, by {decision.utility} ({decision.better} is better). "
        f"{_prices(decision)}choose again after {decision.expires_at[:10]}.{more * explained}",
        style="dim",
    )


def _prices(decision: Decision) -> str:
    """Of which days the prices of the listed offers are."""
    days = sorted({e["offer"].get("price_date") for e in decision.ranking} - {None, ""})
    if not days:
        return ""
    return f"Prices of {' to '.join(dict.fromkeys((days[0], days[-1])))}; "


def flat_rows(decision: Decision) -> list[dict[str, Any]]:
    """The ranking as flat rows: one column for each end of each metric."""
    rows = []
    for entry in decision.ranking:
        row: dict[str, Any] = {"rank": entry["rank"], "source": entry["source"]}
        row |= {("offer" if k == "id" else k): value for k, value in entry["offer"].items()}
        row |= {"nodes": entry["nodes"], "other_regions": entry["other_regions"]}
        for name in ("utility", *METRICS):
            metric = entry[name] or {}
            row[name] = metric.get("value")
            row[f"{name}_low"], row[f"{name}_high"] = metric.get("low"), metric.get("high")
        row |= {"pareto": entry["pareto"], "tied_with": " ".join(entry["tied_with"])}
        rows.append(row)
    return rows


def to_csv(decision: Decision) -> str:
    """The ranking as CSV with a header line."""
    rows, text = flat_rows(decision), io.StringIO()
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def to_markdown(decision: Decision) -> str:
    """The headline and the ranking as a Markdown table."""
    decision = harmless(decision)
    names = _columns(decision)
    titles = ["rank", "offer", "source", "$/h", *(_title(decision, n) for n in names), "front"]
    lines = [_escaped(headline(decision).plain), ""]
    lines += [f"| {' | '.join(map(_escaped, titles))} |", f"|{'---|' * len(titles)}"]
    for entry in decision.ranking:
        predicted, price = entry["source"] != "measured", entry["offer"]["price_per_hour"]
        many = f"{entry['nodes']} × " if entry["nodes"] > 1 else ""
        cells = [
            str(entry["rank"]),
            f"{many}{entry['offer']['id']}",
            entry["source"],
            number(price * entry["nodes"]) if price else "unknown",
            *(interval(entry[name], predicted) for name in names),
            "yes" if entry["pareto"] else "",
        ]
        lines.append(f"| {' | '.join(map(_escaped, cells))} |")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("~", "\\~")
