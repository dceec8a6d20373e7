"""What the probe costs: at start-up, in its own calls per step, and on steps of 5 ms.

Bars: under 20 µs a step, under 1 % on 5 ms steps. What is compared takes turns, so that a busy
machine disturbs both alike.
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

from underdog.measuring import injection

STEP_SECONDS = 0.005

# Blocks of a few steps with and without the probe take turns in one process: what disturbs the
# machine, or differs between two processes, meets both alike.
TRAINING = """
import json, sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset, dataloader

BLOCK, FIRST = 4, 40
torch.set_num_threads(1)
width, blocks = int(sys.argv[1]), int(sys.argv[2])
model = torch.nn.Sequential(
    torch.nn.Linear(64, width), *(torch.nn.Linear(width, width) for _ in range(4))
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
loss_of = torch.nn.MSELoss()
size = 32 * (FIRST + BLOCK * blocks)
data = TensorDataset(torch.randn(size, 64), torch.zeros(size, width))
hooks = sys.modules["torch.optim.optimizer"]
tables = hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks
places = [
    (dataloader._BaseDataLoaderIter, "__next__"), (dataloader._BaseDataLoaderIter, "_next_index"),
    (torch.autograd, "backward"), (torch.nn.Sequential, "__call__"), (torch.nn.MSELoss, "__call__"),
]

def switch(on):
    for owner, name in places:
        if name == "__call__":
            setattr(owner, name, ours[owner, name]) if on else delattr(owner, name)
        else:
            setattr(owner, name, ours[owner, name] if on else ours[owner, name].__wrapped__)
    for table, kept in zip(tables, kept_tables):
        table.update(kept) if on else table.clear()

seconds = {True: [], False: []}
began = None
for index, (x, y) in enumerate(DataLoader(data, batch_size=32)):
    optimizer.zero_grad()
    loss_of(model(x), y).backward()
    optimizer.step()
    if index == FIRST - 1:
        ours = {place: vars(place[0])[place[1]] for place in places}
        kept_tables = [dict(table) for table in tables]
    if index >= FIRST - 1 and (index - FIRST + 1) % BLOCK == 0:
        now = time.perf_counter()
        if began is not None:
            seconds[on].append((now - began) / BLOCK)
        turn = (index - FIRST + 1) // BLOCK % 4
        wanted = turn in (0, 3)  # with, without, without, with
        if began is None:
            on = True
        if wanted != on:
            switch(wanted)
            on = wanted
        began = time.perf_counter()
pairs = zip(seconds[True], seconds[False])
print(json.dumps([sorted(seconds[False])[len(seconds[False]) // 2], [a / b for a, b in pairs]]))
"""

# the hooks' own work for one step: a fetch, a model and a loss called, a backward, an optimizer
CALLS = """
import json, sys, time
import torch
from underdog_probe import startup
from underdog_probe.hooks.torch_observer import Observer
from underdog_probe.hooks.torch_tap import Tap

class Nothing:
    training = True

batch = (torch.zeros(32, 8), torch.zeros(32, 1))
clock = time.thread_time  # others on the machine are not the hooks' cost
recorder = startup.recorder()
tap = Tap(Observer(recorder), torch.is_grad_enabled)
model, loss, optimizer = Nothing(), Nothing(), Nothing()
tap.optimizers = 1
call = lambda *args, **kwargs: None
fetch = lambda iterator: batch
expected = lambda iterator: (32, False)
steps = int(sys.argv[1])
rounds = []
for _ in range(9):
    began = clock()
    for _ in range(steps):
        tap.fetch(fetch, model, 1, expected)
        tap.call(model, call, batch, {})
        tap.call(loss, call, batch, {})
        tap.backward(call, (), {}, True)
        tap.before_update(optimizer)
        tap.after_update(optimizer)
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


def training(blocks: int) -> tuple[float, list[float]]:
    """Seconds of a step without the probe, and the ratio of each pair of blocks."""
    width = 512
    step, _ = json.loads(run(TRAINING, width, 20, probe=True)[1])
    width = max(16, round(width * (STEP_SECONDS / step) ** 0.5))  # time goes as width squared
    step, ratios = json.loads(run(TRAINING, width, blocks, probe=True)[1])
    return step, ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=30)
    parser.add_argument("--blocks", type=int, default=1200, help="of 4 steps")
    parser.add_argument("--data", type=Path, help="not used: the figures need no data")
    arguments = parser.parse_args()
    bare, probed = start_up(arguments.starts)
    own = json.loads(run(CALLS, 5000, probe=True)[1])
    step, ratios = training(arguments.blocks)
    quartiles = statistics.quantiles(ratios, n=4)
    print(f"{'figure':<44}{'value':>14}   bar")
    print(f"{'start-up of an empty Python, without':<44}{bare:>11.2f} ms")
    print(f"{'start-up of an empty Python, with the probe':<44}{probed:>11.2f} ms")
    print(f"{'all hooks together, per step':<44}{1e6 * own:>11.1f} µs   < 20 µs")
    print(f"{'a step without the probe':<44}{1e3 * step:>11.2f} ms")
    print(f"{'the same with it, median of pairs':<44}{100 * (quartiles[1] - 1):>+11.2f} %    < 1 %")
    error = 1.2533 * statistics.stdev(ratios) / len(ratios) ** 0.5  # of a median
    print(f"{'standard error of that':<44}{100 * error:>11.2f} %")


if __name__ == "__main__":
    main()
