"""Metrics: named pure functions of a measurement and an offer, with a unit and a direction.

A metric is plain arithmetic over the attributes of ``m`` and ``o``, so the one formula serves
numbers, numpy arrays and the columns of a query over a million offers. What is unknown is NULL
in a query and makes the metric unknown.

``m`` has ``samples_per_second``, ``samples_per_paid_second`` (less on spot, where interruptions
cost time), ``samples_to_train`` (of the whole job, from ``--samples``), ``waiting_hours`` (without
a machine) and ``power_w``; ``o`` has the columns of an offer, with ``price_per_hour`` of all its
nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from underdog.core.columns import Column

Better = Literal["higher", "lower"]
Formula = Callable[[Any, Any], Any]


class Metric(NamedTuple):
    """A metric of the registry: its name, unit, direction, meaning and formula."""

    name: str
    unit: str
    better: Better
    doc: str
    formula: Formula


METRICS: dict[str, Metric] = {}


def metric(*, unit: str, better: Better) -> Callable[[Formula], Formula]:
    """Register the decorated formula under its own name; its docstring is its meaning."""

    def register(formula: Formula) -> Formula:
        name = formula.__name__
        METRICS[name] = Metric(name, unit, better, (formula.__doc__ or "").strip(), formula)
        return formula

    return register


@metric(unit="samples/s", better="higher")
def samples_per_second(m: Any, o: Any) -> Any:
    """Training samples per second of all nodes together, pauses and warm-up left out."""
    return m.samples_per_second


@metric(unit="samples/$", better="higher")
def samples_per_dollar(m: Any, o: Any) -> Any:
    """Samples that one dollar of machine time buys; on spot after what interruptions cost."""
    return m.samples_per_paid_second * 3600.0 / o.price_per_hour


@metric(unit="$/M samples", better="lower")
def dollars_per_million_samples(m: Any, o: Any) -> Any:
    """Machine time for a million samples, in dollars."""
    return o.price_per_hour * 1e6 / (m.samples_per_paid_second * 3600.0)


@metric(unit="h", better="lower")
def hours_to_train(m: Any, o: Any) -> Any:
    """Hours until the job's samples are done, waiting included; needs ``--samples``."""
    return m.samples_to_train / (m.samples_per_paid_second * 3600.0) + m.waiting_hours


@metric(unit="$", better="lower")
def dollars_to_train(m: Any, o: Any) -> Any:
    """Machine time for the job's samples, in dollars; needs ``--samples``."""
    return m.samples_to_train / (m.samples_per_paid_second * 3600.0) * o.price_per_hour


@metric(unit="samples/kWh", better="higher")
def samples_per_kwh(m: Any, o: Any) -> Any:
    """Samples per kilowatt-hour: at the power measured, else at the accelerators' power limit."""
    return m.samples_per_paid_second * 3.6e6 / m.power_w


@metric(unit="kg", better="lower")
def kg_co2e(m: Any, o: Any) -> Any:
    """CO2 equivalent of the job's electricity on the region's grid; needs ``--samples``."""
    return m.samples_to_train / m.samples_per_paid_second / 3.6e6 * m.power_w * o.kg_co2e_per_kwh


@metric(unit="share", better="higher")
def useful_share(m: Any, o: Any) -> Any:
    """The share of paid time that is progress: below 1 on spot, where interruptions cost time."""
    return m.samples_per_paid_second / m.samples_per_second


NEED_SAMPLES = ("hours_to_train", "dollars_to_train", "kg_co2e")

# of a machine that is there at once and stays
NOTHING_IN_THE_WAY: dict[str, str | float] = {"waiting_hours": 0.0}

# columns of an offer that are a cost: as a bare utility, less of them is better
LOWER_COLUMNS = ("price_per_hour", "accelerator_power_w", "kg_co2e_per_kwh", "nodes")


def metric_columns() -> tuple[Column, ...]:
    """The metrics as columns of number kind, for an expression over metrics and offers."""
    return tuple(Column(m.name, "number", m.unit, m.doc) for m in METRICS.values())


class _Names:
    """Attributes as query columns: ``names.x`` is the column x, or what ``renamed`` says."""

    def __init__(self, renamed: Mapping[str, str | float]) -> None:
        self._renamed = renamed

    def __getattr__(self, name: str) -> Any:
        from duckdb import ColumnExpression, ConstantExpression  # on use: a page needs no database

        found = self._renamed.get(name, name)
        return ColumnExpression(found) if isinstance(found, str) else ConstantExpression(found)


def metrics_sql(
    rate: str,
    price: str,
    names: Iterable[str] = tuple(METRICS),
    expected: Mapping[str, str] | None = None,
) -> str:
    """A select list of the named metrics, each under its name.

    Args:
        rate: the column that holds samples per second.
        price: the column that holds USD per hour of all nodes.
        names: metrics, by default all.
        expected: the columns of ``samples_per_paid_second`` and ``waiting_hours``; without it no
            machine is waited for or taken away.
    """
    paid = expected or NOTHING_IN_THE_WAY | {"samples_per_paid_second": rate}
    m, o = _Names({"samples_per_second": rate, **paid}), _Names({"price_per_hour": price})
    return ", ".join(f'{METRICS[name].formula(m, o)} AS "{name}"' for name in names)
