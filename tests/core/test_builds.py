"""Which accelerators the recorded version of a framework has code for."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offers_and_trials import chosen, offer, trial

from underdog.catalog import support as matrix
from underdog.core import builds
from underdog.core.builds import Recorded
from underdog.model import Software, Trial

BUILDS = matrix.builds()


def ran(version: str, framework: str = "torch") -> Trial:
    return trial(software=Software(framework=framework, framework_version=version))


def reached(version: str, capability: float, framework: str = "torch") -> bool | None:
    (one,) = builds.recorded([ran(version, framework)])
    spans = builds.spans(one, BUILDS)
    return None if spans is None else any(low <= capability <= high for low, high in spans)


@pytest.mark.parametrize(
    ("version", "capability", "expected"),
    [
        ("2.6.0+cu124", 9.0, True),
        ("2.6.0+cu124", 10.0, False),  # B200
        ("2.6.0", 12.0, False),  # whatever it was built for, no build of 2.6 reaches it
        ("2.7.0+cu126", 10.0, False),
        ("2.7.0+cu128", 10.0, True),
        ("2.7.0+cu128", 7.0, False),  # V100
        ("2.7.0", 12.0, True),
        ("2.8.0+cu128", 7.0, True),
        ("2.11.0+cu128", 7.0, False),
        ("2.11.0+cu126", 7.0, True),
        ("2.13.0+cu130", 6.1, False),
        ("2.13.0+cpu", 6.1, True),
        ("2.3.1+cu118", 3.7, True),  # K80
        ("2.3.1+cu121", 3.7, False),
        ("1.13.1+cu117", 8.0, None),  # no build of it stands in the table
        ("2.7.0a0+7c8ec84dab.nv25.03", 10.0, None),
    ],
)
def test_what_builds_of_pytorch_reach(
    version: str, capability: float, expected: bool | None
) -> None:
    assert reached(version, capability) is expected


def test_other_frameworks() -> None:
    assert reached("2.17.0", 5.2, "tensorflow") is False
    assert reached("2.17.0", 12.0, "tensorflow") is True
    assert reached("0.6.0", 3.7, "jax") is False
    assert reached("1.0", 8.0, "mxnet") is None


def test_the_toolkit_of_a_build_is_read_from_its_version() -> None:
    software = Software(framework="PyTorch", framework_version="2.10.0+cu130")
    (one,) = builds.recorded([trial(software=software), trial(id="b", software=software)])
    assert one == Recorded("torch", "2.10.0", "13.0")
    assert one.words == "PyTorch 2.10.0, built for CUDA 13.0"
    assert builds.recorded([dataclasses.replace(ran("2.6.0"), status="failed")]) == []


def test_pinned_software_rules_out_with_its_reason() -> None:
    rows = [
        offer(),
        offer("b200", accelerator="B200", compute_capability=10.0),
        offer("amd", accelerator="MI300X", compute_capability=None, software="rocm"),
        offer("odd", accelerator="G", compute_capability=None),
    ]
    trials = [ran("2.6.0+cu124")]
    lines = {
        line["offer"].split("/")[2]: line for line in chosen(rows, trials, pinned=BUILDS).ledger()
    }
    assert lines["b200"]["reason"] == (
        "needs recorded-software: PyTorch 2.6.0, built for CUDA 12.4 has no code for compute "
        "capability 10.0 of B200"
    )
    assert [kind for kind, line in lines.items() if line["verdict"] == "excluded"] == ["b200"]


def test_one_of_several_versions_that_reaches_is_enough() -> None:
    old, new = ran("2.6.0+cu124"), dataclasses.replace(ran("2.7.0+cu128"), id="b")
    rows = [offer(), offer("b200", accelerator="B200", compute_capability=10.0)]
    unknown = dataclasses.replace(ran("1.13.1"), id="c")
    for trials in ([old, new], [old, unknown]):
        choice = chosen(rows, trials, pinned=BUILDS)
        assert all(line["verdict"] != "excluded" for line in choice.ledger())


def test_what_to_install_instead() -> None:
    def told(version: str, cuda: str, capability: float) -> str:
        return builds.remedy(Recorded("torch", version, cuda), capability, BUILDS)

    newer = "PyTorch 2.7 or newer, built for CUDA 12.8 or newer, reaches it."
    assert told("2.6.0", "12.4", 10.0) == newer
    other = "PyTorch 2.11.0, built for CUDA 12.1 or newer but before 12.8, reaches it."
    assert told("2.11.0", "12.8", 7.0) == other
    older = "PyTorch before 2.8, built for CUDA 11.8 or newer but before 12.0, reaches it."
    assert told("2.9.0", "12.8", 3.7) == older
    assert told("2.9.0", "12.8", 99.0) == "No published build is known to reach it."


@given(st.tuples(st.integers(2, 3), st.integers(0, 20)), st.floats(5.0, 9.0))
@settings(deadline=None)
def test_newer_software_is_never_said_to_lack_what_every_build_has(
    version: tuple[int, int], capability: float
) -> None:
    major, minor = version
    assert reached(f"{major}.{minor}.0", capability) is not False


def test_software_that_is_older_than_a_need_asks_for() -> None:
    need = matrix.needs()["flash-attention-3"]
    assert builds.too_old(need, [ran("2.4.0+cu118")]) == [
        "FlashAttention 3 needs CUDA 12.3; the trials ran 11.8."
    ]
    assert builds.too_old(need, [ran("2.4.0+cu124"), ran("2.4.0")]) == []
