"""From what was seen of a run to the timeline of its trial, at its end or on the way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from underdog.core import timeline as core
from underdog.core.series import Series
from underdog.core.timeline import Readings
from underdog.measuring.nvml import DeviceReading
from underdog.measuring.sampler import Sample, Sampler, by_device, is_busy, mean, spread
from underdog.model import Timeline
from underdog.units import GIB


def timeline_of(
    series: Series | None, sampler: Sampler, began: float, most: int | None = None
) -> Timeline | None:
    """The timeline of a run, None where nothing was seen of it.

    Args:
        series: the steps of the job.
        began: where no step was seen, the time that is told as 0.
        most: look at so many samples only, for the sake of speed.
    """
    zero = began if series is None or not len(series) else float(series.start[0])
    samples = list(sampler.samples)
    if most is not None:
        samples = spread(samples, most)
    times = np.array([sample.time for sample in samples], dtype=float)
    found = Timeline(
        steps={} if series is None else core.of_steps(series),
        usage=core.of_readings(times, readings_of(samples, sampler), zero),
        pauses={} if series is None else core.of_pauses(series),
    )
    return found if found.steps or found.usage else None


def readings_of(samples: list[Sample], sampler: Sampler) -> dict[str, Readings]:
    """The readings of samples by the names of ``docs/reference/usage.md``."""

    def counter(get: Callable[[Sample], float | None]) -> Readings:
        return Readings("counter", _array([get(sample) for sample in samples]))

    found = {
        "cores": counter(lambda s: s.tree.user + s.tree.system),
        "host_cores": counter(lambda s: s.host.busy),
        "memory_gib": Readings("level", _array([sampler.memory_gib(s) for s in samples])),
        "disk_read_bytes_per_second": counter(lambda s: s.tree.read),
        "disk_write_bytes_per_second": counter(lambda s: s.tree.written),
        "network_receive_bytes_per_second": counter(lambda s: s.host.received),
        "network_send_bytes_per_second": counter(lambda s: s.host.sent),
        "cpu_power_w": counter(lambda s: s.joules),
    }
    return found | _of_devices(samples, sampler)


def _of_devices(samples: list[Sample], sampler: Sampler) -> dict[str, Readings]:
    """Those of the accelerators that were busy, or of all where none was."""
    rows = by_device(samples)
    busy = {index for index, row in rows.items() if is_busy(row)} or set(rows)

    def level(get: Callable[[list[DeviceReading]], float | None]) -> Readings:
        devices = [[d for d in sample.devices if d.index in busy] for sample in samples]
        return Readings("level", _array([get(some) for some in devices]))

    def fullest(devices: list[DeviceReading]) -> float | None:
        held = [size for d in devices if (size := sampler.device_bytes(d)) is not None]
        return max(held) / GIB if held else None

    def power(devices: list[DeviceReading]) -> float | None:
        known = [d.power_w for d in devices if d.power_w is not None]
        return sum(known) if known else None

    if not busy:
        return {}
    return {
        "accelerator_utilization": level(lambda some: mean(d.utilization for d in some)),
        "accelerator_memory_gib": level(fullest),
        "accelerator_power_w": level(power),
    }


def _array(values: list[float | None]) -> core.Floats:
    return np.array(values, dtype=float)  # None becomes NaN
