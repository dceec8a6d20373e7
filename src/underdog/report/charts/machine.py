"""How a trial used its machine over time: a small picture for each reading, one below another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from underdog.core.views.records import TrialView
from underdog.report.charts import parts
from underdog.report.charts.marks import where
from underdog.report.charts.parts import Spec, drawn, words
from underdog.report.charts.throughput import span_layers, spans

PANEL = 74  # pixels of one picture
GAP = 34  # between two, with the name of the lower one
TITLE = 12  # pixels of the name above its picture


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture: the readings in it, from the one that is drawn first to the last.

    Attributes:
        title: with the unit.
        names: columns of a timeline, the main one first; a second one is dashed.
        factor: what they are multiplied by.
        second: what the dashed line is.
        least: the largest reading that is worth a picture.
    """

    title: str
    names: tuple[str, ...]
    factor: float = 1.0
    second: str = ""
    least: float = 0.0


PANELS = (
    Panel("processor, cores", ("cores", "host_cores"), second="all of the machine"),
    Panel("accelerator, % of the time busy", ("accelerator_utilization",), 100),
    Panel("accelerator memory, GiB", ("accelerator_memory_gib",)),
    Panel("memory, GiB", ("memory_gib",)),
    Panel("accelerator power, W", ("accelerator_power_w",)),
    Panel("read from disk, MB/s", ("disk_read_bytes_per_second",), 1e-6, least=1),
    Panel("written to disk, MB/s", ("disk_write_bytes_per_second",), 1e-6, least=1),
    Panel("network in, MB/s", ("network_receive_bytes_per_second",), 1e-6, least=1),
    Panel("network out, MB/s", ("network_send_bytes_per_second",), 1e-6, least=1),
)


def spec(view: TrialView) -> Spec | None:
    """Processor, accelerator and memory use over the time since the first step.

    Every reading has a picture with its own unit, from 0 up; None without a reading.
    """
    usage = view.timeline.usage if view.timeline else {}
    times = [drawn(time) for time in usage.get("seconds", [])]
    end = max((time for time in times if time is not None), default=0.0)
    panels = [(panel, lines) for panel in PANELS if (lines := _lines(panel, usage, times))]
    if not panels or end <= 0:
        return None
    unit, name = parts.clock(end)
    x = parts.axis_of([0.0, end / unit], zero=True, log=False)
    height = len(panels) * (PANEL + GAP) - GAP
    rows, layers = spans(view, end, unit, x), []
    along = x.channel("x", f"{name} since the first step", grid=False)
    layers += span_layers(along, height, TITLE + 16)
    told = []
    for index, (panel, lines) in enumerate(panels):
        top = index * (PANEL + GAP)
        for line, (column, readings) in enumerate(lines):
            rows += [
                {"panel": index, "line": line, "x": drawn(at / unit), "y": drawn(value)}
                for at, value in readings
            ]
            known = [value for _, value in readings if value is not None]
            if column == panel.names[0]:
                told.append(f"{panel.title}: {parts.figure(sum(known) / len(known))}")
        layers += _layers(along, panel, index, top, lines)
    heading = parts.Heading(
        "The machine",
        [f"{words(view.workload, 50)} on {words(view.offer, 70)}"],
        f"Use of the machine over {parts.figure(end / unit)} {name}; means of {'; '.join(told)}.",
    )
    return parts.chart(heading, rows, layers, height) | {
        "resolve": {"scale": {"y": "independent"}},
    }


Readings = list[tuple[float, float | None]]


def _lines(
    panel: Panel, usage: dict[str, list[float | None]], times: Sequence[float | None]
) -> list[tuple[str, Readings]]:
    """The readings of a picture by column, if there are any of the main one."""
    found = []
    for column in panel.names:
        readings: Readings = [
            (at, None if (value := drawn(reading)) is None else value * panel.factor)
            for at, reading in zip(times, usage.get(column, []), strict=False)
            if at is not None and at >= 0
        ]
        if any(value is not None and value >= panel.least for _, value in readings):
            found.append((column, readings))
    return found if found and found[0][0] == panel.names[0] else []


def _layers(
    x: Spec, panel: Panel, index: int, top: int, lines: Sequence[tuple[str, Readings]]
) -> list[Spec]:
    """One picture: it takes its part of the height by the range of its scale."""
    values = [value for _, readings in lines for _, value in readings]
    y = parts.axis_of(values, zero=True, log=False)
    field = y.channel("y", None, tickCount=3, grid=True, orient="left", offset=0)
    field["scale"] |= {"range": [top + PANEL, top]}
    dashed = f" (dashed: {panel.second})" if len(lines) > 1 else ""
    layers: list[Spec] = [
        {
            "data": {"values": [{"label": f"{panel.title}{dashed}"}]},
            "mark": {"type": "text", "style": "name"},
            "encoding": {
                "x": {"value": 0},
                "y": {"value": top - TITLE},
                "text": {"field": "label", "type": "nominal"},
            },
        }
    ]
    for line in range(len(lines)):
        mark = {"type": "line", "style": "measured" if line == 0 else "mean"}
        layers.append(
            {
                "transform": where(f"datum.panel === {index} && datum.line === {line}"),
                "mark": mark | {"strokeDash": [5, 3] if line else [1, 0]},
                "encoding": {
                    "x": x,
                    "y": field if line == 0 else field | {"axis": None},
                },
            }
        )
    return layers
