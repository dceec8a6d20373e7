"""The probe's way into the user's process: what the child's environment needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

PROBE = Path(__file__).parent.parent / "probe"
START_UP = PROBE / "inject"  # holds a sitecustomize.py and nothing else


def environment(
    records: Path | str,
    *,
    base: Mapping[str, str] | None = None,
    samples_per_step: float | None = None,
    profile: bool = True,
) -> dict[str, str]:
    """The environment in which Python starts with the probe.

    Only one folder joins the child's path, and it holds only a ``sitecustomize.py``: nothing of
    underdog's own environment reaches the user's. Python does not run it under ``-S``, ``-I`` or
    ``-E``; such a script is not observed.

    Args:
        records: an existing folder; the probe writes there.
        base: the environment to add to; this process's by default.
        samples_per_step: overrides the counting, per step of each observed process.
        profile: let the probe profile the workload.
    """
    child = dict(os.environ if base is None else base)
    search = [part for part in child.get("PYTHONPATH", "").split(os.pathsep) if part]
    start_up = str(START_UP)
    child["PYTHONPATH"] = os.pathsep.join([start_up, *(p for p in search if p != start_up)])
    child["UNDERDOG_RECORDS"] = str(Path(records).resolve())
    child.pop("UNDERDOG_SAMPLES_PER_STEP", None)
    if samples_per_step is not None:
        child["UNDERDOG_SAMPLES_PER_STEP"] = repr(float(samples_per_step))
    if not profile:
        child["UNDERDOG_PROFILE"] = "0"
    return child
