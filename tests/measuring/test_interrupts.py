"""A request to end is heeded whenever it comes."""

from __future__ import annotations

import os
import sys

from underdog.measuring.interrupts import Interrupts
from underdog.measuring.nvml import Nvml
from underdog.measuring.observe import Limits
from underdog.measuring.run import Request, run


def test_one_that_comes_before_the_script_has_started_ends_it() -> None:
    interrupts = Interrupts()
    interrupts.count, interrupts.polite = 1, False  # a SIGTERM, as the script was being started
    silent = os.open(os.devnull, os.O_WRONLY)
    request = Request(
        command=[sys.executable, "-c", "import time; time.sleep(60)"],
        limits=Limits(seconds=60.0),
        stdout_to=silent,
    )
    seen = run(request, Nvml(), interrupts)
    os.close(silent)
    assert seen.ending == "interrupt"
    assert seen.ended - seen.began < 50
