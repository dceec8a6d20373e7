"""Steps, samples and samples per second of every kind of loop, against the script's own count.

Bars: steps and samples exact, the rate within 2 %. A loop whose library is not installed in
``--python`` is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

TESTS = Path(__file__).parent.parent / "tests" / "probe"
LIBRARIES = ("accelerate", "lightning", "transformers")
NOT_LOOPS = {"out_of_memory"}


def helper() -> ModuleType:
    """What the tests run their scripts with."""
    spec = importlib.util.spec_from_file_location("observed", TESTS / "observed.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{TESTS} is needed: run this in a checkout.")
    module = importlib.util.module_from_spec(spec)
    sys.modules["observed"] = module
    spec.loader.exec_module(module)
    return module


def loops(script: str) -> list[str]:
    """The kinds of loop that a script has."""
    text = (TESTS / "scripts" / script).read_text()
    found = re.findall(r"^def ([a-z]\w*)\(truth: Truth", text, re.MULTILINE)
    return found + re.findall(r'^    "(\w+)": lambda t', text, re.MULTILINE)


def runnable(python: str, kind: str) -> bool:
    library = next((name for name in LIBRARIES if kind.startswith(name)), "torch")
    code = f"import importlib.util, sys; sys.exit(not importlib.util.find_spec('{library}'))"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the Python that trains")
    parser.add_argument("--kind", help="only kinds with this in their name")
    arguments = parser.parse_args()
    tests = helper()
    print(f"{'loop':<36}{'steps':>7}{'ours':>7}{'samples':>9}{'ours':>8}{'rate error':>12}")
    for script in ("updates.py", "batches.py", "around.py", "compiled.py", "trainers.py"):
        for kind in loops(script):
            if (arguments.kind or "") not in kind or kind in NOT_LOOPS:
                continue
            if not runnable(arguments.python, kind):
                print(f"{kind:<36}  its library is not installed")
                continue
            with tempfile.TemporaryDirectory() as folder:
                seen = tests.observe([script, kind], Path(folder), python=[arguments.python])
            row(kind, seen, tests.rate_error)


def row(kind: str, seen: Any, rate_error: Callable[[Any, Any], float]) -> None:
    """One line of the table; several ranks are added up."""
    truths, processes = seen.truths, seen.trained
    true = [sum(t[name] for t in truths) for name in ("steps", "samples")]
    ours = [sum(len(p.steps) for p in processes), sum(p.samples for p in processes)]
    error = "-"
    if true == ours and truths and truths[0]["rate"]:
        error = f"{100 * rate_error(processes[0], truths[0]):+.3f} %"
    wrong = "" if true == ours else "  WRONG"
    print(f"{kind:<36}{true[0]:>7}{ours[0]:>7}{true[1]:>9}{ours[1]:>8.0f}{error:>12}{wrong}")


if __name__ == "__main__":
    main()
