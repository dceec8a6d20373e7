"""Data inside a page: JSON that no text in it can leave, compressed where it is large."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from markupsafe import Markup

from underdog.core.views.records import LedgerLine

PARTS = 4  # of the name of an offer: provider, place, instance type, purchase
FIGURE = r"([0-9][0-9,.]*)"
PLAIN = 4096  # characters up to which data stay readable in the file
_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def data(value: Any, name: str) -> Markup:
    """A ``script`` element that holds a value as JSON and is never run.

    Args:
        value: what JSON can hold; NaN and infinity are no part of it.
        name: the element's class, by which a script of the page finds it.
    """
    # ASCII only, so that half of a surrogate pair does no harm; "<" spelled out, so that no text
    # can end the element
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
    if len(text) > PLAIN:
        return compressed(text, name)
    element = Markup('<script type="application/json" class="{}">{}</script>')
    return element.format(name, Markup(text))


def compressed(text: str, name: str) -> Markup:
    """The same for a text, which the page's ``underdog.unzipped`` gives back."""
    packed = base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
    return Markup('<script type="application/gzip" class="{}">{}</script>').format(name, packed)


def columns(lines: Sequence[LedgerLine]) -> dict[str, Any]:
    """The lines of a ledger as a page holds them: what comes again is there once.

    Names share their parts, which a slash sets apart, and reasons their words: a quarter of what
    a compressed list of texts takes. The page's ``ledger.js`` puts them together again.
    """
    reasons = _once(line.reason for line in lines)
    return {
        "offers": _parts([line.offer for line in lines]),
        "verdicts": _once(line.verdict for line in lines),
        "reasons": reasons | {"words": _figures(reasons["words"])},
    }


def _once(values: Iterable[Hashable]) -> dict[str, Any]:
    """Each value once, and at which place of them each one stands."""
    places: dict[Hashable, int] = {}
    at = [places.setdefault(value, len(places)) for value in values]
    return {"words": list(places), "at": at}


def _parts(names: Sequence[str]) -> list[dict[str, Any]]:
    """The first, second … part of every name; None where a name has fewer."""
    split = [name.split("/", PARTS - 1) for name in names]
    return [
        _once(parts[place] if place < len(parts) else None for parts in split)
        for place in range(PARTS)
    ]


def _figures(texts: Sequence[str]) -> dict[str, Any]:
    """Texts as what stands between their figures, and the first, second … figure of each."""
    split = [re.split(FIGURE, text) for text in texts]
    most = max((len(parts) // 2 for parts in split), default=0)
    figures = [
        " ".join(parts[place] for parts in split if place < len(parts))
        for place in range(1, 2 * most, 2)
    ]
    return {"between": _once(tuple(parts[::2]) for parts in split), "figures": figures}
