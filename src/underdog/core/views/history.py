"""The view of a workload over time: what was measured when, and what changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from underdog.core.history import Shift, counted, shifts
from underdog.core.origin import price_of
from underdog.core.regression import machine_of, moved, software_of
from underdog.core.views.facts import knob_text
from underdog.core.views.records import HistoryPoint, HistoryView, Marker
from underdog.core.views.trial import per_dollar
from underdog.core.views.words import brief, plain, range_of
from underdog.model import Trial

SHOWN_VERSIONS = 4  # of one moment
SAME_PRICE = 1e-6  # relative; prices of sources differ by their rounding


def history_view(workload: str, trials: Sequence[Trial]) -> HistoryView:
    """The measurements of one workload that can be compared, and what happened between them.

    Each series is one kind of machine, with its purchase option where that is not on demand, and
    with its knobs where they differ.

    Args:
        trials: of the workload, in any order.
    """
    found = counted(trials)
    series = _series(found)
    by_name: dict[str, list[Trial]] = {}
    for trial in found:
        by_name.setdefault(series[trial.id], []).append(trial)
    markers = [_changed(shift, series) for shift in _all_shifts(found)]
    for name, members in by_name.items():
        for before, after in pairwise(members):
            markers += _between(name, before, after)
    return HistoryView(
        workload=workload,
        points=[_point(trial, series[trial.id]) for trial in found],
        markers=sorted(markers, key=_order),
        machines=list(by_name),
    )


def thinned(view: HistoryView, most: int) -> HistoryView:
    """The view with so many points or little more: of each machine every so manieth.

    The last of each machine is there, and those at which something happened; of moves of prices
    and versions the latest.
    """
    stride = math.ceil(len(view.points) / most)
    if stride <= 1:
        return view
    changes = [mark for mark in view.markers if mark.kind == "change"]
    others = [mark for mark in view.markers if mark.kind != "change"]
    markers = sorted([*changes[-most:], *others[-most // 4 :]], key=_order)
    marked = {(mark.machine, mark.at) for mark in markers}
    left: dict[str, int] = {}
    kept = []
    for point in reversed(view.points):
        place = left.get(point.machine, 0)
        left[point.machine] = place + 1
        if place % stride == 0 or (point.machine, point.at) in marked:
            kept.append(point)
    left_out = view.left_out + len(view.points) - len(kept)
    return replace(view, points=kept[::-1], markers=markers, left_out=left_out)


def _order(mark: Marker) -> tuple[str, str, str]:
    return mark.at, mark.machine, mark.kind


def _series(trials: Sequence[Trial]) -> dict[str, str]:
    """The name of the series of each trial, by its id."""
    several = len({tuple(sorted(trial.knobs.items())) for trial in trials}) > 1
    return {trial.id: _name(trial, several) for trial in trials}


def _name(trial: Trial, with_knobs: bool) -> str:
    words = [machine_of(trial)]
    bought = trial.offer.purchase if trial.offer else trial.machine.purchase
    if bought not in (None, "", "on-demand"):
        words.append(bought)
    if with_knobs and trial.knobs:
        words.append(knob_text(dict(sorted(trial.knobs.items()))))
    return ", ".join(words)


def _point(trial: Trial, name: str) -> HistoryPoint:
    rate = range_of(trial.measurement.samples_per_second if trial.measurement else None)
    price = price_of(trial)
    return HistoryPoint(
        trial=trial.id,
        at=trial.started_at,
        machine=name,
        samples_per_second=rate,
        price_per_hour=price,
        samples_per_dollar=per_dollar(rate, price),
        version=trial.software.framework_version,
    )


def _all_shifts(trials: Sequence[Trial]) -> Iterable[Shift]:
    """The changes of level of each series, the last ones first."""
    while found := shifts(trials):
        yield from found
        earlier = frozenset().union(*(shift.earlier for shift in found))
        trials = [trial for trial in trials if trial.id in earlier]


def _changed(shift: Shift, series: dict[str, str]) -> Marker:
    ratio = shift.ratio
    way = "higher" if ratio.value > 1 else "lower"
    low, high = sorted(100 * abs(end - 1) for end in (ratio.low, ratio.high))
    told = f"throughput {plain(100 * abs(ratio.value - 1), 2)} % {way} from here on"
    if (ratio.low - 1) * (ratio.high - 1) > 0:
        told += f" (95 % interval {plain(low, 2)} to {plain(high, 2)} %)"
    if shift.changed:
        told += f"; changed with it: {_moves(shift.changed)}"
    return Marker(at=shift.since, machine=series[shift.first], kind="change", text=told)


def _between(name: str, before: Trial, after: Trial) -> Iterable[Marker]:
    """What moved from one measurement of a series to the next."""
    old, new = price_of(before), price_of(after)
    if old is not None and new is not None and abs(new / old - 1) > SAME_PRICE:
        told = f"price ${plain(old, 4)} to ${plain(new, 4)} an hour"
        yield Marker(at=after.started_at, machine=name, kind="price", text=told)
    moves = moved(software_of(before), software_of(after))
    moves.pop("commit", None)  # of the user's own code, which moves all the time
    # what was not seen before, or is no more, says nothing of its version
    versions = {name: pair for name, pair in moves.items() if "none" not in pair}
    if versions:
        yield Marker(at=after.started_at, machine=name, kind="version", text=_moves(versions))


def _moves(changed: dict[str, tuple[str, str]]) -> str:
    told = [
        f"{brief(name, 40)} {brief(old, 40)} to {brief(new, 40)}"
        for name, (old, new) in list(changed.items())[:SHOWN_VERSIONS]
    ]
    more = len(changed) - SHOWN_VERSIONS
    return ", ".join([*told, *([f"{more} more"] if more > 0 else [])])
