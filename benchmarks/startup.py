"""What starting costs: each command against an empty Python, interleaved in one run.

Bar: `underdog --help` takes at most 4 times `python -c pass`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

UNDERDOG = str(Path(sys.executable).with_name("underdog"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import underdog": [sys.executable, "-c", "import underdog"],
    "underdog --help": [UNDERDOG, "--help"],
    "underdog measure --help": [UNDERDOG, "measure", "--help"],
    "underdog offers --limit 1": [UNDERDOG, "offers", "--limit", "1"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(repeats):
        for name, command in COMMANDS.items():
            began = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True)
            seconds[name].append(time.perf_counter() - began)
    empty = statistics.median(seconds["python -c pass"])
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name:<27} {median * 1e3:6.0f} ms  {median / empty:5.1f} times")


if __name__ == "__main__":
    main()
