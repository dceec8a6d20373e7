"""What the probe costs: at start-up, in its own calls per step, and on steps of 5 ms.

Bars: under 20 µs a step, under 1 % on 5 ms steps. Runs with and without the probe alternate, and
each pair gives one ratio, so that a busy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from underdog.measure import injection

STEP_SECONDS = 0.005

TRAINING = """
import json, sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
width, steps = int(sys.argv[1]), int(sys.argv[2])
model = torch.nn.Sequential(
    torch.nn.Linear(64, width), *(torch.nn.Linear(width, width) for _ in range(4))
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
loss_of = torch.nn.MSELoss()
data = TensorDataset(torch.randn(32 * steps, 64), torch.zeros(32 * steps, width))
ends = []
for x, y in DataLoader(data, batch_size=32):
    optimizer.zero_grad()
    loss_of(model(x), y).backward()
    optimizer.step()
    ends.append(time.perf_counter())
seconds = sorted(b - a for a, b in zip(ends[20:], ends[21:]))
print(json.dumps(seconds[len(seconds) // 10]))  # a step that nothing else disturbed
"""

# the hooks' own work for one step: a fetch, a model and a loss called, a backward, an optimizer
CALLS = """
import json, sys, time
import torch
from underdog_probe import startup
from underdog_probe.hooks.torch_observer import Observer

class Nothing:
    training = True

batch = (torch.zeros(32, 8), torch.zeros(32, 1))
clock = time.thread_time  # others on the machine are not the hooks' cost
recorder = startup.recorder()
observer = Observer(torch, recorder)
model, loss, optimizer = Nothing(), Nothing(), Nothing()
observer.optimizers = 1
call = lambda *args, **kwargs: None
fetch = lambda: batch
expected = lambda: (32, False)
steps = int(sys.argv[1])
rounds = []
for _ in range(9):
    began = clock()
    for _ in range(steps):
        observer.fetch(fetch, 1, expected, model)
        observer.call(model, call, batch, {})
        observer.call(loss, call, batch, {})
        observer.backward(call, (), {}, True)
        observer.before_update(optimizer)
        observer.after_update(optimizer)
    rounds.append((clock() - began) / steps)
print(json.dumps(sorted(rounds)[len(rounds) // 2]))
"""


def run(code: str, *arguments: object, probe: bool) -> tuple[float, str]:
    """Seconds that the process took, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if probe:
            environment = injection.environment(folder, base=environment, profile=False)
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return time.perf_counter() - began, done.stdout


def start_up(pairs: int) -> tuple[float, float]:
    """Milliseconds of an empty Python without and with the probe, medians."""
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(pairs):
        for probe in (False, True):
            seconds[probe].append(run("pass", probe=probe)[0])
    return 1e3 * statistics.median(seconds[False]), 1e3 * statistics.median(seconds[True])


def training(pairs: int, steps: int) -> tuple[float, list[float]]:
    """Seconds of an undisturbed step without the probe, and the ratio of each pair."""
    width = fitting_width()
    plain, ratios = [], []
    for pair in range(pairs):
        found = {}
        for probe in (False, True) if pair % 2 else (True, False):
            found[probe] = json.loads(run(TRAINING, width, steps, probe=probe)[1])
        plain.append(found[False])
        ratios.append(found[True] / found[False])
    return statistics.median(plain), ratios


def fitting_width() -> int:
    """A model width at which a step takes about 5 ms on this machine."""
    width = 512
    fastest = min(json.loads(run(TRAINING, width, 60, probe=False)[1]) for _ in range(2))
    return max(16, round(width * (STEP_SECONDS / fastest) ** 0.5))  # time goes as width squared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--data", type=Path, help="not used: the figures need no data")
    arguments = parser.parse_args()
    bare, probed = start_up(4 * arguments.pairs)
    own = json.loads(run(CALLS, 5000, probe=True)[1])
    step, ratios = training(arguments.pairs, arguments.steps)
    quartiles = statistics.quantiles(ratios, n=4)
    print(f"{'figure':<44}{'value':>14}   bar")
    print(f"{'start-up of an empty Python, without':<44}{bare:>11.2f} ms")
    print(f"{'start-up of an empty Python, with the probe':<44}{probed:>11.2f} ms")
    print(f"{'all hooks together, per step':<44}{1e6 * own:>11.1f} µs   < 20 µs")
    print(f"{'an undisturbed step without the probe':<44}{1e3 * step:>11.2f} ms")
    print(f"{'the same with it, median of pairs':<44}{100 * (quartiles[1] - 1):>+11.2f} %    < 1 %")
    middle = f"{100 * (quartiles[0] - 1):+.2f} … {100 * (quartiles[2] - 1):+.2f} %"
    print(f"{'middle half of the pairs':<44}{middle:>18}")


if __name__ == "__main__":
    main()
