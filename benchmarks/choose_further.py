"""What needs and layers of service add to choosing over 80,000 offers, in one process.

    python benchmarks/choose_further.py

Target: 80,000 offers in 0.5 s after start with four needs, and with layers of service too. The
offers are those of ``benchmarks/choose.py``. The three questions are asked in turns, so that a busy
machine slows all of them; ``against`` is the time over that of the bare question.
"""

from __future__ import annotations

import argparse
import statistics
import time

from choose import BY, WHERE, offers, trials

from underdog.catalog import services as prices
from underdog.catalog import support as matrix
from underdog.core import layers
from underdog.core.choosing import Request, choose
from underdog.core.columns import BY_NAME
from underdog.core.evidence import gather
from underdog.core.expression import parse
from underdog.core.layers import Volume
from underdog.core.services import HOURS_PER_MONTH, Api
from underdog.core.support import chosen
from underdog.core.table import Table
from underdog.core.utility import parse_utility

NEEDS = ("fp32", "sdpa-efficient", "torch-compile", "pytorch")


def seconds(table: Table, needs: tuple[str, ...], compared: bool) -> float:
    began = time.perf_counter()
    request = Request(
        utility=parse_utility(BY),
        where=parse(WHERE, BY_NAME),
        needs=chosen(needs, matrix.needs()),
    )
    choice = choose(table, gather(trials()), request)
    assert choice.ranking()
    assert choice.funnel()
    assert choice.test_next()
    if compared:
        volume = Volume(samples=3e6, hours=HOURS_PER_MONTH, utilisation=0.6)
        apis = [Api(name="an API", per_request=1e-3)]
        assert layers.compare(choice, volume, apis, managed=prices.managed())["break_even"]
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    table = offers(80_000, 4_000, options.seed)
    questions = {"bare": ((), False), "four needs": (NEEDS, False), "and layers": (NEEDS, True)}
    took: dict[str, list[float]] = {name: [] for name in questions}
    for _ in range(options.repeats):
        for name, (needs, compared) in questions.items():
            took[name].append(seconds(table, needs, compared))
    medians = {name: statistics.median(times) for name, times in took.items()}
    print(f"{'question':<12}{'seconds':>9}{'target':>9}{'against':>9}")
    for name, median in medians.items():
        print(f"{name:<12}{median:>8.2f}s{0.5:>8.1f}s{median / medians['bare']:>9.2f}")


if __name__ == "__main__":
    main()
