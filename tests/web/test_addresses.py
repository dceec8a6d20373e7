"""Any text can be the name of a page, and comes back from its address as it was."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

from hypothesis import example, given
from hypothesis import strategies as st

from underdog.web.addresses import address, is_twin, more_in, name_in, raw_path

TEXTS = st.text(st.characters(codec=None), max_size=40)


def scope(said: str) -> tuple[dict[str, object], dict[str, str]]:
    path, _, query = said.partition("?")
    return {"raw_path": path.encode(), "path": path}, dict(parse_qsl(query, keep_blank_values=True))


@given(TEXTS, st.booleans(), st.sampled_from(["", "/ledger"]))
@example("a.json", False, "")
@example("a.json", True, "")
@example("..", True, "/ledger")
@example("", False, "")
@example("a/../b", True, "")
@example("half \udc80", True, "")
@example("a?b#c%2F", False, "/ledger")
def test_a_name_comes_back(name: str, twin: bool, more: str) -> None:
    said = address("trials", name, twin=twin, more=more)
    assert re.fullmatch(r"/trials/[\x21-\x7e]*", said), said
    asked, values = scope(said)
    assert name_in(asked, values) == name
    assert is_twin(asked) is twin
    assert more_in(asked) == more.strip("/")
    steps = raw_path(asked).lower().replace("%2e", ".").split("/")
    assert "." not in steps
    assert ".." not in steps


def test_bytes_that_are_no_text_are_a_name_all_the_same() -> None:
    asked, values = scope("/trials/%FF%FE")
    assert name_in(asked, values) == "\ufffd\ufffd"
