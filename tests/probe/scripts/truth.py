"""What a script itself knows of its steps: the counts and the rate that the probe must find."""

from __future__ import annotations

import json
import os
import time

FIRST = 4  # steps that the rate leaves out


class Truth:
    """Counts by hand, on the script's own clock."""

    def __init__(self) -> None:
        self.ends: list[float] = []
        self.samples: list[int] = []
        self.skipped = 0
        self.pauses: dict[str, float] = {}

    def step(self, samples: int, skipped: bool = False) -> None:
        self.ends.append(time.perf_counter())
        self.samples.append(samples)
        self.skipped += skipped

    def pause(self, kind: str, seconds: float) -> None:
        self.pauses[kind] = self.pauses.get(kind, 0.0) + seconds

    def tell(self) -> None:
        seconds = self.ends[-1] - self.ends[FIRST - 1] if len(self.ends) > FIRST else None
        rate = sum(self.samples[FIRST:]) / seconds if seconds else None
        line = {
            "pid": os.getpid(),
            "steps": len(self.ends),
            "samples": sum(self.samples),
            "skipped": self.skipped,
            "rate": rate,
            "pauses": self.pauses,
            "ends": self.ends,
        }
        # one write, for several ranks share the pipe
        os.write(1, (json.dumps(line) + "\n").encode())
