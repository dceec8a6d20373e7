"""Azure and Google Cloud: no answer, however broken, makes a price or any other error."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from underdog.catalog.providers import azure, gcp
from underdog.catalog.sources import LeftOut, Raw
from underdog.errors import CatalogError

SAMPLES = Path(__file__).parent / "samples"
ODD = (None, "", "x", "0", "-1", 0, -1, 1, 3.5, math.nan, math.inf, True, [], {}, [None], 10**400)


def sample(provider: str) -> dict[str, list[Any]]:
    files = sorted(SAMPLES.glob(f"{provider}_*.json"))
    return {
        file.stem.removeprefix(f"{provider}_"): json.loads(file.read_text(encoding="utf-8"))
        for file in files
    }


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a document."""
    if path:
        yield path
    keys: Any = ()
    if isinstance(value, dict | list):
        keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield from places(value[key], (*path, key))


def broken(documents: dict[str, list[Any]], seed: int, changes: int) -> dict[str, list[Any]]:
    """Documents with values replaced, removed, repeated and in another order."""
    chance, made = random.Random(seed), copy.deepcopy(documents)
    for _ in range(changes):
        path = chance.choice([p for p in places(made) if len(p) > 1])
        holder = made
        for key in path[:-1]:
            holder = holder[key]
        if chance.random() < 0.3:
            del holder[path[-1]]
        else:
            holder[path[-1]] = copy.deepcopy(chance.choice(ODD))
    for items in made.values():
        if chance.random() < 0.3:
            items.extend(copy.deepcopy(items[: chance.randrange(len(items) + 1)]))
        if chance.random() < 0.3:
            del items[chance.randrange(len(items) + 1) :]
        if chance.random() < 0.5:
            chance.shuffle(items)
    return made


def outcome(module: Any, raw: Raw) -> tuple[CatalogError | None, list[Any]]:
    found: list[Any] = []
    try:
        found.extend(module.parse(raw))
    except CatalogError as error:
        return error, found
    return None, found


@pytest.mark.parametrize(("provider", "module"), [("azure", azure), ("gcp", gcp)])
@given(seed=st.integers(0, 2**32), changes=st.integers(0, 6))
@settings(max_examples=120, deadline=None)
def test_a_broken_answer_is_one_error_or_honest_rows(
    provider: str, module: Any, seed: int, changes: int
) -> None:
    documents = broken(sample(provider), seed, changes)
    raw = Raw(provider=provider, documents=documents, source="s", date="2026-11-30")
    error, found = outcome(module, raw)
    if error is not None:
        assert re.match(rf"{provider}: \w+\[\d+\]", error.message), error.message
        assert changes
    for row in found:
        if isinstance(row, LeftOut):
            assert row.reason
            continue
        price = row["price_per_hour"]
        assert (price is None) == bool(row["price_unknown_reason"])
        assert price is None or (math.isfinite(price) and price > 0)
        assert row["accelerator"] or not row["accelerator_count"]
        assert all(not isinstance(v, float) or math.isfinite(v) for v in row.values())


@pytest.mark.parametrize(("provider", "module"), [("azure", azure), ("gcp", gcp)])
@given(order=st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_the_order_of_an_answer_does_not_matter(provider: str, module: Any, order: Any) -> None:
    documents = sample(provider)
    raw = Raw(provider=provider, documents=documents, source="s", date="2026-11-30")
    want = sorted(map(str, (one for one in module.parse(raw) if isinstance(one, dict))))
    for items in documents.values():
        order.shuffle(items)
    assert sorted(map(str, (one for one in module.parse(raw) if isinstance(one, dict)))) == want
