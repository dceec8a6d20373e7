"""A real browser for the tests of pages: fixtures ``browser`` and ``page``, and ``axe``.

A page that writes an error to its console, or asks for anything that is neither on this machine
nor in the page itself, fails its test.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"]
HERE = re.compile(r"(file|data|blob|about):|(http|ws)://(127\.0\.0\.1|localhost|\[::1\])[:/]")


@pytest.fixture(scope="session")
def _chromium() -> Iterator[tuple[Any, Any]]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}: apt-get install chromium")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield launched, loop
        asyncio._set_running_loop(loop)
        launched.close()


@pytest.fixture
def browser(_chromium: tuple[Any, Any]) -> Iterator[Any]:
    """Debian's Chromium, headless, one for all tests of a process."""
    launched, loop = _chromium
    # Playwright's loop counts as running until the end; only its own tests are to see that, or no
    # other test of the process could run a loop
    asyncio._set_running_loop(loop)
    yield launched
    asyncio._set_running_loop(None)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of its own at 1280 × 800, with no way out of this machine.

    Its ``set_viewport_size`` and ``emulate_media`` show it narrow, dark or printed.
    """
    size = {"width": 1280, "height": 800}
    # what moves smoothly is somewhere else when a test looks for it
    context = browser.new_context(viewport=size, locale="en-GB", reduced_motion="reduce")
    faults: list[str] = []
    context.route(lambda address: not HERE.match(address), lambda route: route.abort())
    context.on("request", lambda request: _no_stranger(request.url, faults))
    opened = context.new_page()
    opened.on("console", lambda said: _no_error(said, faults))
    opened.on("pageerror", lambda error: faults.append(f"uncaught: {error}"))
    yield opened
    context.close()
    assert not faults, "\n".join(faults)


def _no_stranger(address: str, faults: list[str]) -> None:
    if not HERE.match(address):
        faults.append(f"asked for {address[:200]}")


def _no_error(said: Any, faults: list[str]) -> None:
    if said.type == "error":
        faults.append(f"an error in the console: {said.text}")


def axe(page: Any, *rules: str) -> list[str]:
    """The serious and critical faults of accessibility that axe-core finds on a page.

    Each is one line: the rule, what it asks for, and up to three places that break it. With
    rules, such as ``color-contrast``, only those are asked.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_axe_core())
    found = page.evaluate(
        """(rules) => axe.run(document, {
            resultTypes: ["violations"], ...(rules.length ? {runOnly: rules} : {}),
        }).then((result) => result.violations)""",
        list(rules),
    )
    return [_told(fault) for fault in found if fault["impact"] in ("serious", "critical")]


@cache
def _axe_core() -> str:
    pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def _told(fault: dict[str, Any]) -> str:
    places = [f"{node['target'][0]} ({node['failureSummary']})" for node in fault["nodes"][:3]]
    more = len(fault["nodes"]) - len(places)
    return f"{fault['id']}: {fault['help']}: {'; '.join(places)}{f' and {more} more' * (more > 0)}"
