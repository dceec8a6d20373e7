"""The pages as people use them: in a real browser, from a real server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from browser import axe
from cli.measured_script import script
from underdog.verbs.serving import Reader
from underdog.web.addresses import address, query
from web.serving import LIMIT, Served, serving
from web.stores import SCRIPT

pytestmark = pytest.mark.slow

DRAWN = """
() => Promise.all([...document.querySelectorAll("figure.chart")].map(
  (figure) => underdog.charts.begin(figure).then(() => figure.querySelector("svg") !== null)))
"""
SIDEWAYS = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def pages(reader: Reader) -> list[str]:
    trial, other = (line.id for line in reader.trials(study="study-1").lines[:2])
    decision = next(line.id for line in reader.decisions() if line.study)
    return [
        *("/", "/live", "/studies", "/decisions", "/trials?size=20", "/catalog?size=5", "/compare"),
        address("studies", "study-1"),
        address("decisions", decision),
        address("decisions", decision, more="/ledger"),
        address("trials", trial),
        address("trials", "trial-failed"),
        address("workloads", "gpt"),
        address("workloads", SCRIPT),
        f"/compare?{query({'a': trial, 'b': other})}",
    ]


def test_no_page_has_a_fault(page: Any, served: Served, reader: Reader) -> None:
    """None in the console, none of accessibility; none is wider than the screen, none runs text."""
    page.on("dialog", lambda dialog: pytest.fail("a text of the store was run"))
    for place, path in enumerate(pages(reader)):
        page.set_viewport_size({"width": 1280, "height": 800})
        answer = page.goto(served.address.rstrip("/") + path)
        assert answer.status == 200, (path, answer.text())
        assert all(page.evaluate(DRAWN)), path
        # both schemes and both widths, in turn: to look for faults takes seconds
        page.emulate_media(color_scheme=("light", "dark")[place % 2])
        if place % 4 < 2:
            page.set_viewport_size({"width": 390, "height": 800})
        assert axe(page) == [], path
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate(SIDEWAYS) <= 0, path


def test_the_catalog_is_filtered_by_keyboard(page: Any, served: Served) -> None:
    page.goto(f"{served.address}catalog")
    head, fault = page.locator("#results h2"), page.locator("#where-fault")
    page.keyboard.press("/")
    expect(page.locator("#where")).to_be_focused()
    page.keyboard.type("acelerator_memory_gib >= 24")
    expect(fault).to_contain_text("Did you mean 'accelerator_memory_gib'?", timeout=1000 * LIMIT)
    expect(page.locator("#where")).to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.type("c")
    expect(head).to_contain_text("offers", timeout=1000 * LIMIT)
    expect(fault).to_be_empty()
    assert "accelerator_memory_gib" in page.url
    page.keyboard.press("Tab")
    expect(page.locator("#sort")).to_be_focused()
    page.locator("#by-price_per_hour").focus()
    page.keyboard.press("Enter")
    expect(page.locator("th[aria-sort=descending]")).to_be_visible(timeout=1000 * LIMIT)
    prices = [
        float(text.replace(",", ""))
        for text in page.locator("table.offers tbody tr td:nth-child(2)").all_inner_texts()
    ]
    assert prices == sorted(prices, reverse=True)


def test_trials_and_the_ledger_are_filtered_in_place(
    page: Any, served: Served, reader: Reader
) -> None:
    page.goto(f"{served.address}trials")
    page.locator("#status").select_option("failed")
    expect(page.locator("#results h2")).to_have_text("1 trial", timeout=1000 * LIMIT)
    decision = next(line.id for line in reader.decisions() if line.study)
    page.goto(served.address.rstrip("/") + address("decisions", decision, more="/ledger"))
    page.locator("#find").fill("nothing of the kind")
    expect(page.locator("#results")).to_contain_text("No line matches", timeout=1000 * LIMIT)


def test_the_live_page_moves_while_a_script_is_measured(page: Any, tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite3")
    train = script(tmp_path, "while True: step(0.004)\n")
    command = [sys.executable, "-m", "underdog", "measure", "--store", store, "--price", "1.5"]
    command += ["--whole", "--", sys.executable, train]
    with serving("--store", store) as served:
        page.goto(f"{served.address}live")
        expect(page.locator("#live")).to_contain_text("Nothing is being measured")
        measuring = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            run = page.locator("section.run")
            steps = run.locator(".gauges dd").nth(1)
            expect(run.locator(".headline")).to_contain_text(
                "samples per second", timeout=1000 * LIMIT
            )
            expect(run.locator("figure[data-name=throughput] svg")).to_be_visible(
                timeout=1000 * LIMIT
            )
            before = steps.inner_text()
            expect(steps).not_to_have_text(before, timeout=1000 * LIMIT)
            expect(run.locator(".gauges dd").nth(3)).to_contain_text("$", timeout=1000 * LIMIT)
            assert page.locator("figure.next").count() <= 3
        finally:
            measuring.terminate()
            measuring.wait(LIMIT)
        expect(page.locator("#live")).to_contain_text(
            "Nothing is being measured", timeout=1000 * LIMIT
        )
        page.goto("about:blank")
