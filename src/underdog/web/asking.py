"""What an address asks for: names, numbers and filters, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from starlette.requests import Request

from underdog.errors import UsageError, did_you_mean
from underdog.model import Status
from underdog.web import addresses

SIZE, MOST = 50, 500  # lines of a part
LAST = 1_000_000  # number of a part that is taken
STATUSES: tuple[str, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the name in its path and the values of its query."""

    name: str
    more: str
    values: Mapping[str, str]
    path: str

    @classmethod
    def of(cls, request: Request) -> Asked:
        """What a request asks for."""
        values = dict(request.query_params)
        name = addresses.name_in(request.scope, values)
        path = addresses.raw_path(request.scope).removesuffix(addresses.TWIN) or "/"
        return cls(name, addresses.more_in(request.scope), values, path)

    def text(self, name: str) -> str | None:
        """A value; None where it is missing or empty."""
        return self.values.get(name) or None

    def one_of(self, name: str, known: Iterable[str]) -> str | None:
        """A value that must be a known one.

        Raises:
            UsageError: it is another one.
        """
        value, known = self.text(name), list(known)
        if value is not None and value not in known:
            raise UsageError(f"There is no {name} '{value[:100]}'.", did_you_mean(value, known))
        return value

    def part(self) -> tuple[int, int]:
        """How many lines are asked for, and how many come before them.

        Raises:
            UsageError: a number that is none, or beyond what there can be.
        """
        size = self._count("size", SIZE, MOST)
        return size, size * (self._count("page", 1, LAST) - 1)

    def address(self, *, twin: bool = False, **changed: object) -> str:
        """The same page, with other values."""
        ending = addresses.TWIN if twin else ""
        path = "/index" if twin and self.path == "/" else self.path
        said = addresses.query({**self.values, **changed})
        return f"{path}{ending}{'?' if said else ''}{said}"

    def _count(self, name: str, otherwise: int, most: int) -> int:
        value = self.text(name)
        if value is None:
            return otherwise
        if not (value.isascii() and value.isdigit() and len(value) < 9 and 1 <= int(value) <= most):
            raise UsageError(f"'{value[:100]}' is no {name} from 1 to {most:,}.")
        return int(value)
