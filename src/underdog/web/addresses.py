"""Addresses of pages, and the names in them; any text can be a name.

A page at ``/trials/ID`` has its twin at ``/trials/ID.json``. The dot of a name that itself ends in
``.json`` is written ``%2E``, so that the two cannot be mixed up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote, urlencode

from starlette.types import Scope

TWIN = ".json"
# a browser takes these for a step in the path, however they are written
_STEPS = frozenset({"", ".", ".."})


def address(kind: str, name: str, *, twin: bool = False, more: str = "") -> str:
    """Where the page of something is, such as ``address("trials", id)``."""
    ending = TWIN if twin else ""
    if name in _STEPS:
        return f"/{kind}/{more}{ending}?{query({'name': name})}"
    said = quote(name, safe="", errors="surrogatepass")
    if said.endswith(TWIN):
        said = f"{said.removesuffix(TWIN)}%2Ejson"
    return f"/{kind}/{said}{more}{ending}"


def query(values: Mapping[str, Any]) -> str:
    """The query of an address; what is None or empty is left out, but for an empty name."""
    kept = {k: v for k, v in values.items() if v is not None and (v != "" or k == "name")}
    return urlencode(kept, errors="surrogatepass")


def raw_path(scope: Scope) -> str:
    """The path as it was asked for, nothing decoded."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    return raw.partition(b"?")[0].decode("ascii", "replace")


def is_twin(scope: Scope) -> bool:
    """Whether the JSON of a page is asked for."""
    return raw_path(scope).endswith(TWIN)


def name_in(scope: Scope, given: Mapping[str, str]) -> str:
    """The name that a page is asked about: the second part of its path, or ``name`` of its query.

    Args:
        given: the query, which tells the names that no path can hold.
    """
    said = _parts(scope)[2]
    if not said:
        return given.get("name", "")
    try:
        return unquote(said, errors="surrogatepass")
    except UnicodeDecodeError:  # bytes that are no text in any way: no name is like that
        return unquote(said)


def more_in(scope: Scope) -> str:
    """What follows the name in a path: ``ledger`` of ``/decisions/ID/ledger.json``."""
    return _parts(scope)[3]


def _parts(scope: Scope) -> list[str]:
    found = raw_path(scope).removesuffix(TWIN).split("/", 3)
    return [*found, *[""] * (4 - len(found))]
