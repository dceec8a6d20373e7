"""A report as people read it: in a real browser, from a file, with the network off."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import sample_views
from browser import axe
from underdog.core.views.page import Page
from underdog.core.views.records import LedgerLine, Point, Range

pytestmark = pytest.mark.slow

SIZE = 3_000_000
SEARCH_MS = 300
SIZES = ((1280, 800), (390, 844))
Open = Callable[[Page], Any]


def ordered(
    points: Sequence[Point], weight: float, deadline: float = math.inf, scale: float = 1.0
) -> list[str]:
    """The names in the order that a wish gives: in time first, then cost and time weighed."""

    def key(place: int) -> tuple[bool, float, int]:
        hours, dollars = points[place].hours.value, points[place].dollars.value
        return hours * scale > deadline, dollars**weight * hours ** (1 - weight), place

    return [points[place].instance_type for place in sorted(range(len(points)), key=key)]


def ranked() -> list[Point]:
    return [point for point in sample_views.points() if point.rank is not None]


def rows(page: Any) -> list[str]:
    """The machines of the whole table, from the first down."""
    more = page.get_by_role("button", name=" more of ")
    if more.count():
        more.click()
    return page.locator("table.ranked .machine").all_inner_texts()


def draw_all(page: Any) -> int:
    """Draw every chart that can be seen; how many there are."""
    return page.evaluate(
        """async () => {
            const shown = [...document.querySelectorAll('figure.chart')]
                .filter((figure) => figure.checkVisibility());
            for (const figure of shown) await underdog.charts.begin(figure);
            return shown.length;
        }"""
    )


def slide(page: Any, weight: int) -> None:
    page.locator("#weight").evaluate(
        "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input', "
        "{bubbles: true})); }",
        weight,
    )


def test_it_opens_from_a_file_without_a_network(report: Any) -> None:
    assert draw_all(report) == 8
    drawn = report.locator("figure.chart .plot svg:visible").count()
    assert drawn == report.locator("figure.chart:visible").count()
    levels = report.locator("h1, h2, h3").evaluate_all("all => all.map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    labels = report.locator(".plot").evaluate_all("all => all.map(p => p.ariaLabel)")
    assert all(labels)


def test_anyone_can_use_it(report: Any) -> None:
    draw_all(report)
    for width, height in SIZES:
        report.set_viewport_size({"width": width, "height": height})
        assert report.evaluate("document.documentElement.scrollWidth") == width
        report.emulate_media(color_scheme="light")
        assert axe(report) == []
        report.emulate_media(color_scheme="dark")
        assert axe(report, "color-contrast") == [], "nothing else depends on the scheme"


def test_what_matters_ranks_the_table_anew_at_once(report: Any) -> None:
    points = ranked()
    decided = [point.instance_type for point in points]
    assert rows(report) == decided
    for preset, weight in (("Cheapest per sample", 1.0), ("Fastest", 0.0), ("Balanced", 0.5)):
        report.get_by_role("button", name=preset).click()
        assert rows(report) == ordered(points, weight), preset
        assert report.locator("#weight").input_value() == f"{100 * weight:g}"
    for weight in (80, 35, 5):
        slide(report, weight)
        assert rows(report) == ordered(points, weight / 100)
        assert report.locator("[data-preset][aria-pressed=true]").count() == 0
    report.get_by_label("Deadline, in hours").fill("12")
    assert rows(report) == ordered(points, 0.05, 12)
    report.get_by_role("button", name="Cheapest per sample").click()
    assert rows(report) == ordered(points, 1, 12)
    said = report.locator(".verdict").inner_text()
    assert said.startswith(f"First: aws/us-east-1/{ordered(points, 1, 12)[0]}/on-demand, $")
    late = report.locator("table.ranked tr.late .machine").all_inner_texts()
    assert set(late) == {p.instance_type for p in points if p.hours.value > 12}
    report.get_by_label("Deadline, in hours").fill("0.1")
    assert "No offer of the table is done in 0.100 hours" in report.locator(".verdict").inner_text()
    report.get_by_label("Deadline, in hours").fill("-3")
    assert "no positive number of hours" in report.locator(".verdict").inner_text()
    report.get_by_role("button", name="As decided").click()
    assert rows(report) == decided
    assert report.get_by_label("Deadline, in hours").input_value() == ""


def test_the_chart_of_the_ranking_follows(report: Any) -> None:
    draw_all(report)
    plot = report.locator("figure[data-name=ranking] .plot")
    decided = plot.get_attribute("aria-label")
    report.get_by_role("button", name="Fastest").click()
    report.locator(".plot[aria-label*='ranked by speed']").wait_for()
    fastest = [p.offer for p in sorted(ranked(), key=lambda p: p.hours.value)]
    assert fastest[0] in plot.get_attribute("aria-label")
    labels = [text for text in plot.locator("text").all_text_contents() if "on-demand" in text]
    assert [text.split()[1] for text in labels] == fastest
    report.get_by_role("button", name="As decided").click()
    plot.and_(report.locator(f".plot[aria-label='{decided}']")).wait_for()


def test_the_deadline_is_set_by_keyboard(report: Any) -> None:
    report.get_by_role("button", name="Deadline").focus()
    report.keyboard.press("Enter")
    field = report.get_by_label("Deadline, in hours")
    assert field.evaluate("field => field === document.activeElement")
    deadline = float(field.input_value())
    points = ranked()
    assert min(p.hours.value for p in points) < deadline < max(p.hours.value for p in points)
    assert rows(report) == ordered(points, 1, deadline)
    report.locator("#weight").focus()
    report.keyboard.press("Home")
    assert rows(report) == ordered(points, 0, deadline)
    report.keyboard.press("ArrowRight")
    assert rows(report) == ordered(points, 0.01, deadline)


def test_samples_that_nobody_told_can_be_given(opened: Open) -> None:
    million = [p for p in sample_views.points(samples=1e6) if p.rank is not None]
    decision = sample_views.decision_view(points=million, samples=None)
    page = opened(sample_views.page(decision=decision, trials=[], study=None, history=None))
    assert "of a million samples" in page.locator("table.ranked caption").inner_text()
    hours = page.locator("table.ranked tbody tr .hours .value")
    before = float(hours.first.inner_text())
    page.get_by_label("Samples of the whole job").fill("50e6")
    assert float(hours.first.inner_text()) == pytest.approx(50 * before, rel=0.01)
    assert "of 50.00\u00a0M samples" in page.locator("table.ranked caption").inner_text()
    page.get_by_label("Deadline, in hours").fill("3")
    page.get_by_role("button", name="Cheapest per sample").click()
    assert rows(page) == ordered(million, 1, 3, scale=50)


def test_every_line_of_the_ledger_is_found_by_keyboard(page: Any, large: Path) -> None:
    assert large.stat().st_size < SIZE
    report = page
    report.goto(large.as_uri())
    lines = sample_views.ledger(80_000)
    status = report.locator("table.lines [role=status]")
    field = report.get_by_label("Find offers and reasons")
    field.focus()
    report.keyboard.type("GCP g6e memory")
    wanted = [one for one in lines if all(w in text_of(one) for w in ("gcp", "g6e", "memory"))]
    told = f"Lines 1–25 of {len(wanted):,} that match, of 80,000"
    status.get_by_text(told).wait_for()
    names = report.locator("table.lines tbody th")
    assert names.all_inner_texts() == [one.offer for one in wanted[:25]]
    report.get_by_role("button", name="Next").focus()
    report.keyboard.press("Enter")
    assert names.all_inner_texts() == [one.offer for one in wanted[25:50]]
    report.get_by_role("button", name="Last").press("Enter")
    assert names.last.inner_text() == wanted[-1].offer
    report.get_by_label("Verdict", exact=True).select_option("untested")
    status.get_by_text("None of 80,000 lines matches").wait_for()
    took = report.evaluate(
        """async () => {
            const {lines: ledger} = document.querySelector('section.ledger');
            const field = document.querySelector('#find');
            let best = Infinity;
            for (const words of ['spot', 'us-east 4', 'zebra', 'a', 'predicted azure 7']) {
                field.value = words;
                const start = performance.now();
                await ledger.search();
                document.body.offsetHeight;
                best = Math.min(best, performance.now() - start);
            }
            return best;
        }"""
    )
    assert took < SEARCH_MS


def text_of(line: LedgerLine) -> str:
    return f"{line.offer} {line.verdict} {line.reason}".lower()


def test_colours_follow_the_system_and_the_switch(report: Any) -> None:
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    light = report.evaluate(paper)
    report.emulate_media(color_scheme="dark")
    dark = report.evaluate(paper)
    assert light != dark
    draw_all(report)
    ink = "getComputedStyle(document.querySelector('figure.chart svg text')).fill"
    on_dark = report.evaluate(ink)
    report.get_by_role("button", name="Light colours").press("Enter")
    assert report.evaluate(paper) == light
    assert report.evaluate(ink) != on_dark, "the chart switches with the page"
    report.get_by_role("button", name="Dark colours").click()
    assert report.evaluate(paper) == dark


def test_a_chart_is_saved_as_a_picture(report: Any) -> None:
    figure = report.locator("figure.chart").first
    draw_all(report)
    for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with report.expect_download() as download:
            figure.get_by_role("button", name=kind).click()
        assert download.value.suggested_filename == f"front.{kind.lower()}"
        assert Path(download.value.path()).read_bytes().startswith(start)


def test_it_prints(report: Any) -> None:
    draw_all(report)
    closed = report.locator("details:not([open])").count()
    assert closed > 0
    assert report.pdf(format="A4").startswith(b"%PDF")
    report.emulate_media(media="print")
    assert not report.locator(".controls").first.is_visible()
    assert not report.locator(".contents").is_visible()
    report.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert report.locator("details:not([open])").count() == 0
    report.evaluate("dispatchEvent(new Event('afterprint'))")
    assert report.locator("details:not([open])").count() == closed


def test_without_javascript_the_answer_and_the_tables_are_there(browser: Any, file: Path) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator(".answer").first.is_visible()
    assert page.locator("table.ranked tbody tr:visible").count() == len(ranked())
    assert page.locator("table.lines tbody tr:visible").count() == 25
    assert not page.locator(".controls").first.is_visible()
    note = "This chart is drawn with JavaScript, which is off"
    assert page.get_by_text(note).first.is_visible()
    context.close()


NASTY = [
    "<script>document.title='hacked'</script>",
    "</script><img src=x onerror=\"document.title='hacked'\">",
    "'\"><svg/onload=document.title='hacked'>&amp;",
    "{{ 7 * 7 }}${document.title='hacked'}",
    "عربى עברית 中文 हिन्दी ไทย 🐕 e\u0301 \u202eesrever",
    "x" * 3000,
    "a/very/long/" * 200,
]


NAMES = [*NASTY, "", "a", "/", "a/b/c/d/e/f", "1,5 12.5.6 ٣ 7e+06", "0", "-", "\n2 \t"]


def nasty_page() -> Page:
    """All there is, every text of a user one of those above."""
    plain = sample_views.page()
    points = [
        dataclasses.replace(
            point,
            offer=f"{NASTY[place % len(NASTY)]}{place}",
            instance_type=f"{NASTY[place % len(NASTY)]}{place}",
            reason=NASTY[1],
            caveats=[NASTY[2]],
            region=NASTY[4],
            accelerator=NASTY[5],
        )
        for place, point in enumerate(sample_views.points())
    ]
    lines = [LedgerLine(offer=n, verdict="excluded", reason=m) for n in NAMES for m in NAMES]
    decision = sample_views.decision_view(
        points=points,
        ledger=lines,
        answer=NASTY[1],
        runner_up=NASTY[0],
        workload=NASTY[1],
        utility=NASTY[2],
        unit=NASTY[0],
        constraints=NASTY,
    )
    trials = [
        sample_views.trial_view(
            place,
            id=f"{name}{place}",
            offer=name,
            workload=name,
            knobs={name: name},
            command=["python", name],
            headline=name,
            facts=[(name, name)],
        )
        for place, name in enumerate(NASTY)
    ]
    study = dataclasses.replace(plain.study, unit=NASTY[1], ended=NASTY[0], utility=NASTY[2])
    history = dataclasses.replace(plain.history, workload=NASTY[0], machines=NASTY[:2])
    marks = [dataclasses.replace(mark, text=NASTY[1]) for mark in plain.history.markers]
    made = [dataclasses.replace(one, machine=NASTY[0]) for one in plain.history.points]
    history = dataclasses.replace(history, markers=marks, points=made)
    return Page(
        title=NASTY[1],
        created_at=plain.created_at,
        decision=decision,
        study=study,
        trials=trials,
        history=history,
    )


def test_texts_of_a_store_stay_texts(opened: Open) -> None:
    page = opened(nasty_page())
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    draw_all(page)
    page.get_by_role("button", name="Fastest").click()
    page.get_by_label("Find offers and reasons").fill("onerror")
    page.locator("table.lines [role=status]").get_by_text("that match").wait_for()
    held = page.evaluate("document.querySelector('section.ledger').lines.lines")
    assert held == [[name, "excluded", reason] for name in NAMES for reason in NAMES]
    mark = page.locator("figure[data-name=front] .role-mark.mark-symbol path").last
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    assert "document.title" in page.locator(".tip").inner_text()
    assert page.title().startswith("</script><img src=x")
    assert page.locator("main img").count() == 0
    assert NASTY[1] in page.locator("main").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_two_hundred_trials(opened: Open, tmp_path: Path) -> None:
    trials = [sample_views.trial_view(number) for number in range(1, 200)]
    page = opened(sample_views.page(trials=[*trials, sample_views.failed_trial(200)]))
    assert (tmp_path / "report.html").stat().st_size < SIZE
    assert page.locator("details.trial").count() == 200
    page.locator("details.trial summary").nth(60).click()
    figure = page.locator("details.trial").nth(60).locator("figure.chart").first
    figure.scroll_into_view_if_needed()
    figure.locator("svg").wait_for()


def test_one_failed_trial_alone(opened: Open) -> None:
    failed = sample_views.failed_trial()
    page = opened(Page(title="t-4", created_at="2026-11-30T16:53:00+00:00", trials=[failed]))
    assert "out of memory" in page.locator("details.trial summary").inner_text()
    assert "CUDA out of memory" in page.locator(".reason").inner_text()
    assert "Try a smaller batch" in page.locator(".caveats").inner_text()
    assert axe(page) == []


def test_a_deadline_of_the_decision_leaves_its_order(opened: Open) -> None:
    decision = sample_views.decision_view(deadline_hours=30.5)
    page = opened(sample_views.page(decision=decision, trials=[], study=None, history=None))
    field = page.get_by_label("Deadline, in hours")
    assert field.input_value() == "30.5"
    decided = [point.instance_type for point in ranked()]
    assert rows(page) == decided
    assert page.locator("table.ranked tr.late").count() > 0
    field.fill("20")
    assert rows(page) != decided
    page.get_by_role("button", name="As decided").click()
    assert rows(page) == decided


def test_offers_whose_cost_is_unknown_come_last(opened: Open) -> None:
    points = [dataclasses.replace(p, dollars=None) if i == 1 else p for i, p in enumerate(ranked())]
    alone = dataclasses.replace(points[2], dollars=Range(value=1.0), hours=Range(value=1.0))
    points[2] = alone
    decision = sample_views.decision_view(points=points)
    page = opened(sample_views.page(decision=decision, trials=[], study=None, history=None))
    page.get_by_role("button", name="Cheapest per sample").click()
    known = [p for p in points if p.dollars is not None]
    assert rows(page) == [*ordered(known, 1), points[1].instance_type]
    assert page.locator("table.ranked tr").last.locator(".dollars").inner_text() == "unknown"
