"""The roofline: how fast a machine can be at most, from its peak rate and its memory bandwidth.

A sample takes at least ``flops / peak`` and at least ``bytes / bandwidth`` (Williams, Waterman,
Patterson: Roofline, CACM 52(4), 2009). No machine reaches it, so it is only ever used as a ratio
between two machines, one of which was measured. Of several accelerators one is counted, and
processor threads count by Amdahl's law: see ``underdog.core.predict`` for what that leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underdog.model import Profile

Floats = NDArray[np.float64]

# the framework's name of a number format -> the catalog's
FORMATS = {
    "float64": "fp64",
    "float32": "fp32",
    "tf32": "tf32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8": "fp8",
}
PEAK_COLUMNS = {name: f"{short}_tflops" for name, short in FORMATS.items()} | {"int8": "int8_tops"}

NUMBERS = (
    "vcpus",
    "vcpus_sustained",
    "cpu_ghz",
    "cpu_fp32_tflops",
    "cpu_memory_gb_per_s",
    "accelerator_count",
    "accelerator_gb_per_s",
    *PEAK_COLUMNS.values(),
)
TEXTS = ("arch", "cpu_model", "accelerator", "software")

# Amdahl's law: at so many threads a processor gives half of what endless threads would give. And
# of two processors of equal threads, the rates differ by the root of their peaks. Both have the
# least error over pairs of machines (benchmarks/roofline.py, 2,381 processor machines of three
# clouds, Spare Cores, CC BY-SA 4.0).
HALF_AT_THREADS = 20.0
PEAK_EXPONENT = 0.5
# a thread of a current server processor, single precision, where its peak is unknown
THREAD_TFLOPS = 0.05
# sqrt(GB/s x TFLOP/s) of an accelerator that is as fast as one endless thread of such a processor,
# the median over the same data
ACCELERATOR_PER_THREAD = 1.3
# what launching the kernels of one training step takes at least, s: about a thousand at 3 us
LAUNCH_SECONDS = 3e-3


@dataclass(frozen=True, slots=True)
class Hardware:
    """Machines as arrays of one length n; an unknown number is NaN, an unknown text None.

    ``numbers`` has the columns ``NUMBERS``, ``texts`` the columns ``TEXTS``, both by the names
    and units of ``underdog.core.columns``.
    """

    numbers: Mapping[str, Floats]
    texts: Mapping[str, NDArray[np.object_]]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Hardware:
        """The hardware of offers given as dicts; what a dict lacks is unknown."""
        numbers = {
            name: np.array([_number(row.get(name)) for row in rows], dtype=float)
            for name in NUMBERS
        }
        texts = {name: np.array([row.get(name) for row in rows], dtype=object) for name in TEXTS}
        return cls(numbers, texts)

    def __len__(self) -> int:
        return len(self.numbers["vcpus"])

    def take(self, index: Any) -> Hardware:
        """The machines at an index or a mask."""
        return Hardware(
            {name: values[index] for name, values in self.numbers.items()},
            {name: values[index] for name, values in self.texts.items()},
        )

    @property
    def accelerated(self) -> NDArray[np.bool_]:
        """Which machines have an accelerator or a part of one."""
        return np.nan_to_num(self.numbers["accelerator_count"]) > 0


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def accelerator_peak(hardware: Hardware, profile: Profile | None) -> Floats:
    """Peak rate of one accelerator for the workload's number format, TFLOP/s."""
    column = PEAK_COLUMNS.get((profile and profile.number_format) or "float32", "fp32_tflops")
    return hardware.numbers[column]


def accelerator_seconds(hardware: Hardware, profile: Profile | None) -> Floats:
    """Least seconds per sample of one accelerator; in an arbitrary unit without a profile.

    Without a profile it is not known which of the two limits holds: their geometric mean stands
    in, which has the least error over the workloads of benchmarks/roofline.py.
    """
    peak, bandwidth = accelerator_peak(hardware, profile), hardware.numbers["accelerator_gb_per_s"]
    if profile is None or profile.flops_per_sample is None:
        return ACCELERATOR_PER_THREAD / np.sqrt(peak * bandwidth)
    traffic = profile.memory_traffic_bytes_per_sample or 0.0
    return np.maximum(profile.flops_per_sample / (peak * 1e12), traffic / (bandwidth * 1e9))


def cpu_rate(hardware: Hardware) -> Floats:
    """A processor's relative throughput: threads of the reference kind, by Amdahl's law."""
    threads, each = _threads(hardware)
    speed = (each / THREAD_TFLOPS) ** PEAK_EXPONENT
    return speed * threads / (1 + threads / HALF_AT_THREADS)


def _threads(hardware: Hardware) -> tuple[Floats, Floats]:
    """Threads that a processor may use without end, and the peak rate of each, TFLOP/s."""
    sold, peak = hardware.numbers["vcpus"], hardware.numbers["cpu_fp32_tflops"]
    sustained = hardware.numbers["vcpus_sustained"]
    each = np.where(np.isnan(peak), THREAD_TFLOPS, peak / sold)
    return np.where(np.isnan(sustained), sold, sustained), each


def cpu_seconds(hardware: Hardware, profile: Profile | None) -> Floats:
    """Least seconds per sample of a processor, comparable with ``accelerator_seconds``."""
    if profile is None or profile.flops_per_sample is None:
        return 1.0 / cpu_rate(hardware)
    threads, each = _threads(hardware)
    peak = threads * each
    traffic = profile.memory_traffic_bytes_per_sample or 0.0
    bandwidth = hardware.numbers["cpu_memory_gb_per_s"]
    by_memory = np.where(np.isnan(bandwidth), 0.0, traffic / (bandwidth * 1e9))
    return np.maximum(profile.flops_per_sample / (peak * 1e12), by_memory)
