"""What holds for every provider."""

from __future__ import annotations

import pytest

from underdog import plugins
from underdog.catalog.hardware import Hardware
from underdog.catalog.sources import Raw

PACKAGE, GROUP = "underdog.catalog.providers", "underdog.providers"


@pytest.mark.parametrize("name", plugins.names(PACKAGE, GROUP))
def test_every_provider_can_be_asked_and_read(name: str) -> None:
    module = plugins.load(PACKAGE, GROUP, name)
    assert callable(module.fetch)
    assert list(module.parse(Raw(provider=name, documents={}, source="", date="2026-01-02"))) == []


def test_processor_rate_is_cores_times_clock_times_width() -> None:
    from underdog.catalog.hardware import processor_columns

    two_threads = processor_columns(Hardware(vcpus=8, processor="ice-lake", cpu_ghz=3.5))
    assert two_threads["cpu_fp32_tflops"] == pytest.approx(4 * 3.5 * 64 / 1000)
    whole = processor_columns(Hardware(vcpus=8, processor="genoa", cpu_ghz=3.7, whole_cores=True))
    assert whole["cpu_fp32_tflops"] == pytest.approx(8 * 3.7 * 32 / 1000)
    assert processor_columns(Hardware(vcpus=8)) == {"arch": None, "cpu_ghz": None}
