"""Draw docs/images/choose.svg, the picture in the README: what `underdog choose` prints.

UNDERDOG_STORE=demo/store.sqlite3 python tools/draw_picture.py
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from underdog.report.decision import decision_report
from underdog.verbs.choose import Options, decide

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "choose.svg"
WIDTH = 118


def main() -> None:
    decision = decide(Options(limit=12, save=False)).decision
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(decision_report(decision, WIDTH))
    svg = console.export_svg(title="underdog choose", theme=MONOKAI)
    # the viewer's own monospaced font instead of one that would be fetched
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)
    svg = re.sub(r"font-family: Fira Code[^;]*;", "font-family: monospace;", svg)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.S)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(svg)


if __name__ == "__main__":
    main()
