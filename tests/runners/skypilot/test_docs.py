"""The page of targets has every key of ours, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from underdog.runners.skypilot import Target

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "targets.md"


def test_every_key_is_on_the_page() -> None:
    section = PAGE.read_text().split("\n## skypilot\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert named == set(Target.__struct_fields__)
