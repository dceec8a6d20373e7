"""Units are converted once, at the edge. GiB = 2^30 bytes, GB = 10^9 bytes."""

from __future__ import annotations

import re

from underdog.errors import UsageError

GIB = 2**30
MIB = 2**20
GB = 10**9

_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def parse_duration(text: str) -> float:
    """Seconds of a duration such as ``90``, ``90s``, ``5m``, ``48h``, ``2d`` or ``1h30m``.

    Raises:
        UsageError: the text is not a positive duration.
    """
    compact = text.strip().replace(" ", "").lower()
    if re.fullmatch(r"\d+(\.\d+)?", compact):
        compact += "s"
    if not re.fullmatch(r"(\d+(\.\d+)?(min|[smhdw]))+", compact):
        raise UsageError(f"'{text}' is not a duration.", "Write it like 90s, 5m, 48h or 1h30m.")
    parts = re.findall(r"(\d+(?:\.\d+)?)(min|[smhdw])", compact)
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not 0 < seconds < float("inf"):
        raise UsageError(f"'{text}' is not a positive duration.")
    return seconds


def format_seconds(seconds: float) -> str:
    """A duration for people: ``4.2 ms``, ``31 s``, ``5.0 min``, ``2.1 h``, ``3.4 d``."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    for limit, divisor, unit in ((100, 1, "s"), (5400, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.3g} {unit}"
    return f"{seconds / 86400:,.3g} d"
