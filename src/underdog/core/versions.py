"""Which of two versions of a framework or driver is the newer one."""

from __future__ import annotations

import re
from collections.abc import Iterable

# a release, with what the builder added behind it: 2.13.0+cu129, 570.124.06
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)(?:\.post\d+)?(?:[+-].*)?", re.ASCII)
_LONGEST = 100


def release(version: str) -> tuple[int, ...] | None:
    """The numbers of a release, None for a pre-release and for what is no version."""
    found = _RELEASE.fullmatch(version) if len(version) <= _LONGEST else None
    if found is None:
        return None
    numbers = [int(part) for part in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:  # 2.13 is 2.13.0
        numbers.pop()
    return tuple(numbers)


def newest(versions: Iterable[str]) -> str | None:
    """The newest release, None where there is none."""
    known = [(numbers, version) for version in versions if (numbers := release(version))]
    return max(known)[1] if known else None


def is_newer(version: str, than: str) -> bool:
    """Whether a release is newer than another; not where either is no release."""
    a, b = release(version), release(than)
    return a is not None and b is not None and a > b
