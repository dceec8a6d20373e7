"""A report as a file: complete in itself, small, and harmless whatever a store holds."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sample_views
from underdog.core.views.page import Page
from underdog.core.views.records import LedgerLine
from underdog.errors import MissingPackageError
from underdog.report import html
from underdog.report.html import assets, packed, report
from underdog.report.html.environment import compact, day, moment, money, share

SPEC = {"description": "What it shows.", "mark": "point", "data": {"values": []}}
FIRST = (
    "answer",
    "utility",
    "front",
    "ranking",
    "ledger",
    "search",
    "trials",
    "history",
    "footing",
)


class Outline(HTMLParser):
    """Elements of a page in their order, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def named(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.elements if name == tag)


@pytest.fixture(scope="module")
def whole() -> str:
    return html.page(sample_views.page(), dict.fromkeys(("front", "ranking", "funnel"), SPEC))


def test_the_answer_comes_first_and_every_section_in_its_order(whole: str) -> None:
    ids = [a["id"] for a in Outline(whole).named("section")]
    assert ids == list(FIRST)
    links = [a["href"] for a in Outline(whole).named("a") if a.get("class") != "skip"]
    assert links[: len(FIRST)] == [f"#{name}" for name in FIRST]
    main = whole[whole.index("<main") :]
    assert sample_views.page().decision.answer in main[: main.index("</p>")]


def test_it_asks_nothing_of_the_network(whole: str) -> None:
    for tag, attributes in Outline(whole).elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form[action]")
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#"), attributes
        assert not any(name.startswith("on") for name in attributes)
        assert "style" not in attributes, "the policy forbids it"


def test_its_policy_trusts_its_own_scripts_and_no_other(whole: str) -> None:
    policy = next(a for a in Outline(whole).named("meta") if "http-equiv" in a)["content"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", whole, re.DOTALL)
    assert len(scripts) == 1
    library = unpacked(re.search(r'<script [^>]*class="library">.*?</script>', whole)[0])
    assert "vegaEmbed" in library
    for script in [*scripts, library, re.search(r"<style>(.*?)</style>", whole, re.DOTALL)[1]]:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_an_empty_store_is_told(whole: str) -> None:
    text = html.page(Page(title="Nothing", created_at="2026-11-30T16:53:00+00:00"), {})
    assert "There is nothing to show yet" in text
    assert "There is nothing to show yet" not in whole


def test_a_trial_alone_has_its_charts(whole: str) -> None:
    page = sample_views.page(decision=None, study=None, history=None, more_trials=0)
    page = Page(title="A trial", created_at=page.created_at, trials=page.trials[:1])
    text = html.page(page, {"throughput": SPEC, "machine:t-1": SPEC})
    assert [a["data-name"] for a in Outline(text).named("figure")] == ["throughput", "machine"]


def test_charts_of_very_many_trials_are_left_out_before_the_file_grows_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "MOST_OF_TRIALS", 30_000)
    trials = [sample_views.trial_view(number) for number in range(30)]
    large = SPEC | {"data": {"values": [{"x": number**3 % 7919} for number in range(500)]}}
    page = sample_views.page(decision=None, study=None, history=None, trials=trials)
    text = html.page(page, {f"throughput:{trial.id}": large for trial in trials})
    drawn = sum(1 for _ in Outline(text).named("figure"))
    assert 5 < drawn < 20
    assert f"The charts of the last {30 - drawn} trials are left out" in text


@given(st.text(), st.text())
def test_no_text_leaves_the_data_of_a_page(one: str, other: str) -> None:
    element = packed.data({one: other, "end": "</script><script>alert(1)</script>"}, "spec")
    inside = element.removeprefix('<script type="application/json" class="spec">')
    assert inside.count("<") == 1
    assert json.loads(inside.removesuffix("</script>"))[one] in (
        other,
        "</script><script>alert(1)</script>",
    )


def test_large_data_are_compressed() -> None:
    value = [{"reason": f"of it <x>, {n % 7}"} for n in range(5000)]
    element = packed.data(value, "lines")
    assert element.startswith('<script type="application/gzip" class="lines">')
    assert len(element) < len(json.dumps(value)) / 50
    assert json.loads(unpacked(element)) == value


def test_what_comes_again_in_a_ledger_is_there_once() -> None:
    lines = [
        LedgerLine(offer=f"aws/eu-{n % 3}/g{n}", verdict="untested", reason=f"{n % 9:,} (1–2.5) $")
        for n in range(400)
    ]
    found = packed.columns(lines)
    assert [len(part["words"]) for part in found["offers"]] == [1, 3, 400, 1]
    assert found["verdicts"]["words"] == ["untested"]
    assert len(set(found["reasons"]["at"])) == 9
    assert found["reasons"]["words"]["between"]["words"] == [("", " (", "–", ") $")]
    assert found["reasons"]["words"]["figures"][2] == " ".join(["2.5"] * 9)


def unpacked(element: str) -> str:
    """The text of a compressed element."""
    return gzip.decompress(base64.b64decode(re.search(r">(.*)<", element)[1])).decode()


def test_half_a_surrogate_pair_does_no_harm() -> None:
    decision = sample_views.decision_view(answer="half \ud800 of it")
    assert "half ? of it" in html.page(sample_views.page(decision=decision), {})


def test_templates_and_static_files_are_beside_the_code() -> None:
    files = html.static_files()
    assert list(files) == ["underdog.css", "underdog.js", "vega.js"]
    assert all(files.values())
    environment = html.environment(jinja2.DictLoader({"own.html": "{% include '_answer.html' %}"}))
    own = environment.get_template("own.html").render(decision=sample_views.decision_view())
    assert 'id="answer"' in own


@pytest.mark.slow
def test_the_library_of_charts_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = assets.vega.__wrapped__()
    (kept,) = (tmp_path / "underdog").iterdir()
    assert kept.read_text("utf-8") == made
    kept.write_text("kept", "utf-8")
    assert assets.vega.__wrapped__() == "kept"


def test_a_folder_that_keeps_nothing_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import vl_convert

    (tmp_path / "underdog").write_text("a file in its place")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda snippet: "bundle")
    assert "bundle" in assets.vega.__wrapped__()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'underdog\[report\]'"):
        html.page(sample_views.page(), {})


def test_figures_are_written_for_people() -> None:
    assert compact(7.783e6) == "7.78\u00a0M"
    assert compact(1e6) == "1.00\u00a0M"
    assert compact(45_312.0) == "45,300"
    assert compact(float("nan")) == compact(None) == "unknown"
    assert [money(value) for value in (0.014, 0.5, 12.3, 1234.5)] == [
        "0.014",
        "0.50",
        "12.30",
        "1,230",
    ]
    assert [share(value) for value in (0.0041, 0.12, 3.5, 0)] == ["0.4 %", "12 %", "350 %", "0 %"]
    assert moment("2026-11-30T16:53:00+00:00") == "30\u00a0November\u00a02026, 16:53\u00a0UTC"
    assert moment("2026-11-30T18:53:00+02:00") == moment("2026-11-30T16:53:00Z")
    assert day("2026-11-30") == "30\u00a0November\u00a02026"
    assert day("not a day") == moment("not a day") == "not a day"
