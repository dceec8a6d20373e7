"""NVIDIA accelerators by NVML. Everything that a driver does not tell is None."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from underdog.model import Accelerator
from underdog.units import GIB

# reasons by which the driver holds the clocks down, from nvml.h (nvmlClocksEventReason…)
THERMAL_REASONS = 0x20 | 0x40
POWER_REASONS = 0x04 | 0x80


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One look at one device."""

    index: int
    utilization: float | None = None  # share of time in which any kernel ran, 0 to 1
    memory_activity: float | None = None  # share of time in which memory was read or written
    memory_used: int | None = None  # bytes
    process_memory: int | None = None  # bytes of the processes asked for
    power_w: float | None = None
    clock_mhz: float | None = None
    thermal: bool | None = None
    power_capped: bool | None = None
    joules: float | None = None  # since the driver was loaded


class Nvml:
    """The devices of this machine; none where there is no driver."""

    def __init__(self, library: Any = None) -> None:
        self._nvml = library
        self._handles: list[Any] = []
        try:
            if self._nvml is None:
                import pynvml

                self._nvml = pynvml
            self._nvml.nvmlInit()
            count = self._nvml.nvmlDeviceGetCount()
            self._handles = [self._nvml.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
        except Exception:  # no package, no driver, no permission: all mean no device
            self._handles = []

    def __len__(self) -> int:
        return len(self._handles)

    def _ask(self, function: str, *args: Any) -> Any:
        """The answer of one NVML call, None where the device or the driver does not know."""
        try:
            return getattr(self._nvml, function)(*args)
        except Exception:  # NVMLError and, on old drivers, a symbol that is not there
            return None

    def accelerators(self) -> list[Accelerator]:
        """What the devices are."""
        driver = as_text(self._ask("nvmlSystemGetDriverVersion")) if self._handles else None
        found = []
        for index, handle in enumerate(self._handles):
            memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
            limit = self._ask("nvmlDeviceGetEnforcedPowerLimit", handle)
            found.append(
                Accelerator(
                    name=as_text(self._ask("nvmlDeviceGetName", handle)) or "NVIDIA",
                    memory_gib=memory.total / GIB if memory else None,
                    index=index,
                    driver=driver,
                    power_limit_w=scaled(limit, 1000),
                    uuid=as_text(self._ask("nvmlDeviceGetUUID", handle)),
                )
            )
        return found

    def read(self, pids: set[int]) -> list[DeviceReading]:
        """All devices now, with the memory of the given processes apart."""
        return [self._read_one(i, handle, pids) for i, handle in enumerate(self._handles)]

    def _read_one(self, index: int, handle: Any, pids: set[int]) -> DeviceReading:
        rates = self._ask("nvmlDeviceGetUtilizationRates", handle)
        memory = self._ask("nvmlDeviceGetMemoryInfo", handle)
        reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        processes = self._ask("nvmlDeviceGetComputeRunningProcesses", handle)
        ours = [p.usedGpuMemory for p in processes or [] if p.pid in pids]
        sizes = [size for size in ours if size is not None]
        return DeviceReading(
            index=index,
            utilization=scaled(rates.gpu, 100) if rates else None,
            memory_activity=scaled(rates.memory, 100) if rates else None,
            memory_used=memory.used if memory else None,
            process_memory=sum(sizes) if sizes else None,
            power_w=scaled(self._ask("nvmlDeviceGetPowerUsage", handle), 1000),
            clock_mhz=scaled(self._ask("nvmlDeviceGetClockInfo", handle, 1), 1),  # 1: SM clock
            thermal=None if reasons is None else bool(reasons & THERMAL_REASONS),
            power_capped=None if reasons is None else bool(reasons & POWER_REASONS),
            joules=scaled(self._ask("nvmlDeviceGetTotalEnergyConsumption", handle), 1000),
        )

    def close(self) -> None:
        """Give the library back."""
        if self._handles:
            with contextlib.suppress(Exception):
                self._nvml.nvmlShutdown()
            self._handles = []


def scaled(value: Any, divisor: float) -> float | None:
    """A number in our unit, or None."""
    return None if value is None else float(value) / divisor


def as_text(value: Any) -> str | None:
    """NVML's strings are bytes in old versions of its package."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value
