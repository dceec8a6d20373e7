"""What every page needs beside its text: the style, the scripts, and the library of the charts."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from underdog.config import cache_folder
from underdog.errors import MissingPackageError

EMBED = "window.vegaEmbed=vegaEmbed;"  # all that a page asks of the bundle
SCRIPTS = ("page.js", "charts.js", "ranking.js", "utility.js", "ledger.js")


def static_files() -> Mapping[str, bytes]:
    """The files that a page refers to, by name: ``underdog.css``, ``underdog.js``, ``vega.js``.

    Both scripts stand at the end of the body, or are deferred.

    Raises:
        MissingPackageError: vl-convert-python is not installed.
    """
    return {
        "underdog.css": style().encode(),
        "underdog.js": script().encode(),
        "vega.js": vega().encode(),
    }


@cache
def style() -> str:
    """The style of all pages."""
    return _text("page.css")


@cache
def script() -> str:
    """The scripts of all pages, in the order in which they run."""
    return "\n".join(_text(name) for name in SCRIPTS)


@cache
def vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script that sets ``vegaEmbed``.

    It takes seconds to make, so it is kept in the user's cache folder.

    Raises:
        MissingPackageError: vl-convert-python is not installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        raise MissingPackageError("a page with charts", "vl-convert-python", "report") from error
    version = importlib.metadata.version("vl-convert-python")
    kept = cache_folder() / f"vega-embed-{version}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return kept.read_text("utf-8")
    # a function around it, for the bundle is a module: its names are not for the page
    made = f"(()=>{{{vl_convert.javascript_bundle(EMBED)}\n}})();"
    with contextlib.suppress(OSError):
        _keep(kept, made)
    return made


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text, "utf-8")
    part.replace(path)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("static", name).read_text("utf-8")
