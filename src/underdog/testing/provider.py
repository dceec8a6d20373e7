"""What every provider must do: run it against one of your own.

``check_provider(my_module, raw)`` raises AssertionError at the first broken promise. ``raw`` is a
small recorded answer in the true shape of the provider's response.
"""

from __future__ import annotations

import copy
import inspect
import math
import random
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import msgspec

from underdog.catalog.sources import LeftOut, Raw
from underdog.core.columns import OFFER_COLUMNS
from underdog.errors import CatalogError

PURCHASES = ("on-demand", "spot", "reserved")
ODD: tuple[Any, ...] = (
    None,
    "",
    "0",
    0,
    -1,
    -0.0,
    math.nan,
    math.inf,
    1e400,
    "nan",
    "x",
    [],
    {},
    True,
    "9" * 400,
)
_NAMES = [column.name for column in OFFER_COLUMNS]


def check_provider(module: ModuleType, raw: Raw, *, rounds: int = 100, seed: int = 0) -> None:
    """Run all checks.

    Args:
        module: with ``fetch(http, options)`` and ``parse(raw)``.
        raw: a recorded answer with at least one offer.
        rounds: how many broken copies of the answer are tried.

    Raises:
        AssertionError: the provider breaks a promise; the message says which.
    """
    checks = ProviderChecks(module, raw)
    checks.check_interface()
    checks.check_offers()
    checks.check_repeatable()
    checks.check_recorded()
    checks.check_broken(rounds, seed)


class ProviderChecks:
    """The promises of a provider, one method for each."""

    def __init__(self, module: ModuleType, raw: Raw) -> None:
        self.module, self.raw = module, raw

    def check_interface(self) -> None:
        """It has ``fetch(http, options)`` and ``parse(raw)``."""
        for name, count in (("fetch", 2), ("parse", 1)):
            function = getattr(self.module, name, None)
            assert callable(function), f"there is no function {name}"
            parameters = inspect.signature(function).parameters
            assert len(parameters) == count, f"{name} takes {count} parameters"
            assert function.__doc__, f"{name} has a docstring"
        assert self.module.__doc__, "the module says what it is: a dry run shows its first line"

    def check_offers(self) -> None:
        """Rows have all columns and hold what can be; what is left out has a reason."""
        offers = list(_offers(self.parsed(self.raw)))
        assert offers, "the recorded answer has at least one offer"
        for row in offers:
            check_row(row)

    def check_repeatable(self) -> None:
        """The same answer gives the same offers, and stays as it is."""
        before = copy.deepcopy(self.raw)
        first = self.parsed(self.raw)
        assert self.raw == before, "parse changed the answer"
        assert self.parsed(self.raw) == first, "parse is not repeatable"

    def check_recorded(self) -> None:
        """An answer that was recorded as JSON is the same as before."""
        again = msgspec.json.decode(msgspec.json.encode(self.raw), type=Raw)
        assert self.parsed(again) == self.parsed(self.raw), "the answer is not JSON-able"

    def check_broken(self, rounds: int, seed: int) -> None:
        """A broken answer raises CatalogError or nothing, and no false price comes of it."""
        chance = random.Random(seed)
        for number in range(rounds):
            broken = broken_copy(self.raw, chance)
            try:
                found = self.parsed(broken)
            except CatalogError:
                continue
            except Exception as error:
                raise AssertionError(
                    f"broken copy {number} of seed {seed} raises {type(error).__name__}, not "
                    "CatalogError"
                ) from error
            for row in _offers(found):
                check_row(row)

    def parsed(self, raw: Raw) -> list[dict[str, Any] | LeftOut]:
        """What ``parse`` gives."""
        return list(self.module.parse(raw))


def check_row(row: Mapping[str, Any]) -> None:
    """An offer has all columns, and a price that is positive, or unknown with a reason."""
    assert list(row) == _NAMES, "an offer has all columns in their order: use offer_row"
    name = "/".join(str(row[n]) for n in ("provider", "region", "instance_type", "purchase"))
    price = row["price_per_hour"]
    if price is None:
        assert row["price_unknown_reason"], f"{name}: an unknown price has a reason"
    else:
        assert isinstance(price, float), f"{name}: the price {price!r} is no number"
        assert 0 < price < math.inf, f"{name}: the price is {price}"
        assert row["price_unknown_reason"] is None, f"{name}: a known price has no reason"
    for text in ("provider", "region", "instance_type", "price_source", "price_date"):
        assert isinstance(row[text], str), f"{name}: {text} is text"
        assert row[text], f"{name}: {text} is not empty"
    assert row["purchase"] in PURCHASES, f"{name}: {row['purchase']}"
    assert row["accelerator"] or not row["accelerator_count"], f"{name}: an accelerator has a name"
    for column in OFFER_COLUMNS:
        value = row[column.name]
        if column.kind == "number" and value is not None:
            assert not isinstance(value, str | bool), f"{name}: {column.name} is a number"
            assert 0 <= value < math.inf, f"{name}: {column.name} is {value}"


def broken_copy(raw: Raw, chance: random.Random) -> Raw:
    """A copy of an answer: shuffled, cut off, doubled, or with a value of another kind."""
    documents = copy.deepcopy(raw.documents)
    for kind, items in documents.items():
        action = chance.choice(("none", "shuffle", "cut", "double", "value", "value"))
        if action == "shuffle":
            chance.shuffle(items)
        elif action == "cut":
            documents[kind] = items[: chance.randrange(len(items) + 1)]
        elif action == "double":
            documents[kind] = items * 2
        elif action == "value":
            _break_one(items, chance)
    return Raw(provider=raw.provider, documents=documents, source=raw.source, date=raw.date)


def _break_one(inside: Any, chance: random.Random) -> None:
    """Replace, or take away, one value somewhere in a list or dict."""
    while isinstance(inside, list | dict) and inside:
        key = chance.choice(list(inside) if isinstance(inside, dict) else range(len(inside)))
        inner = inside[key]
        if isinstance(inner, list | dict) and inner and chance.random() < 0.9:
            inside = inner
        elif chance.random() < 0.2:
            del inside[key]
            return
        else:
            inside[key] = chance.choice(ODD)
            return


def _offers(found: list[dict[str, Any] | LeftOut]) -> Iterator[dict[str, Any]]:
    for one in found:
        if isinstance(one, LeftOut):
            assert one.provider, "what is left out says of which provider"
            assert one.reason, f"{one.provider}/{one.instance_type}: left out without a reason"
        else:
            yield one
