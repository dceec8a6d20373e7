"""Versions: a release is newer by its numbers; what is no release is never newer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.versions import is_newer, newest, release


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("2.13.0", "2.9.1"),
        ("2.13.0+cu129", "2.12.1+cpu"),
        ("570.124.06", "550.90.07"),
        ("v3.0", "2.99.99"),
        ("2.0.post1", "1.9"),
    ],
)
def test_newer(new: str, old: str) -> None:
    assert is_newer(new, old)
    assert not is_newer(old, new)


@pytest.mark.parametrize(
    "version", ["2.14.0a0+git1", "2.14.0rc1", "2.14.0.dev20261130", "", "none", "9" * 200, "٣.٤"]
)
def test_what_is_no_release_is_never_newer(version: str) -> None:
    assert release(version) is None
    assert not is_newer(version, "1.0")
    assert not is_newer("1.0", version)


def test_the_same_release_is_not_newer() -> None:
    assert not is_newer("2.13.0", "2.13")
    assert not is_newer("2.13.0+cu129", "2.13.0+cpu")


def test_newest() -> None:
    assert newest(["2.9.0", "2.13.0", "2.14.0rc1"]) == "2.13.0"
    assert newest(["main"]) is None


@given(st.text(), st.text())
def test_any_text_is_taken(one: str, other: str) -> None:
    assert not (is_newer(one, other) and is_newer(other, one))
