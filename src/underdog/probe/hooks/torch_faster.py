"""Whether a setting that costs no accuracy would run this step faster on this processor.

The single-precision matrix products and convolutions that the step is made of are run again, as
small stand-ins with the same shapes, along the paths that this PyTorch has; the paths take turns,
so that a disturbance meets them alike. Nothing of the user's run is touched: the work is done in
a thread of its own (thread counts belong to the thread that sets them) and the few global flags
are put back.
"""

from __future__ import annotations

import ctypes
import os
import statistics
import threading
import time
from typing import Any

from ._software import processors

MOST_SECONDS = 1.5
MOST_OPERATIONS = 3
MOST_BYTES = 2**28  # of the stand-ins of one operation
LEAST_GAIN = 1.2
LEAST_ROUNDS = 3
HOPELESS = 0.5  # of the speed now
MOST_ROUNDS = 60

ONEDNN_LINES = """\
import torch
_onednn, _aten = torch.ops.mkldnn._linear_pointwise, torch.library.Library("aten", "IMPL")
def _mm(a, b):
    if a.dtype is torch.float32:
        return _onednn(a, b.t(), None, "none", [], "")
    return torch.mm(a, b, out=a.new_empty(a.shape[0], b.shape[1]))
def _addmm(c, a, b, *, beta=1, alpha=1):
    if a.dtype is torch.float32 and c.shape == b.shape[1:] and beta == alpha == 1:
        return _onednn(a, b.t(), c, "none", [], "")
    return torch.addmm(c, a, b, beta=beta, alpha=alpha, out=a.new_empty(a.shape[0], b.shape[1]))
_aten.impl("mm", _mm, "CPU")
_aten.impl("addmm", _addmm, "CPU")
"""


class Path:
    """One way to run operations: what to call it, what to set for it, and ``runner(torch,
    operator, arguments)``, which gives the call that goes along it, or None where none does."""

    def __init__(
        self, title: str, remedy: str, runner: Any, threads: Any = None, onednn: Any = None
    ) -> None:
        self.title, self.remedy, self.runner = title, remedy, runner
        self.threads, self.onednn = threads, onednn


def faster_setting(
    torch: Any, operations: Any, step_seconds: float, seconds: float = MOST_SECONDS
) -> tuple[str, str, str] | None:
    """The best setting found, if it would speed the whole step up by more than 20 %.

    Args:
        torch: the module.
        operations: {(operator, signature): [calls, flops]} of one step on the CPU.
        step_seconds: how long a step takes now.
        seconds: how long the trial may take.

    Returns:
        ``(code, message, remedy)``, or None. The gain counts only the operations that were timed
        and takes the lower quartile of the paired ratios.
    """
    chosen = _heaviest(torch, operations)
    if not chosen or not step_seconds > 0:
        return None
    found = []

    def work() -> None:
        try:
            found.append(_try_paths(torch, chosen, seconds))
        except Exception:  # an operator that cannot be repeated: no answer is the honest one
            return

    thread = threading.Thread(target=work, name="underdog-settings")
    with _settings_kept(torch):
        thread.start()
        thread.join()
    return _verdict(found[0], step_seconds) if found else None


def _heaviest(torch: Any, operations: Any) -> Any:
    """``[(operator, tensors and values, calls)]`` of the heaviest float32 operations."""
    ranked = sorted(operations.items(), key=lambda item: -item[1][1])
    total = sum(flops for _, (_, flops) in ranked)
    chosen = []
    for (name, signature), (calls, flops) in ranked[:MOST_OPERATIONS]:
        formats = {part[3] for part in signature if _is_tensor(part)}
        size = sum(4 * _product(part[1]) for part in signature if _is_tensor(part))
        if formats == {"torch.float32"} and size <= MOST_BYTES and flops > 0.02 * total:
            chosen.append((name, _stand_ins(torch, signature), calls))
    return chosen


def _is_tensor(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 4 and part[0] == "tensor"


def _product(numbers: Any) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def _stand_ins(torch: Any, signature: Any) -> Any:
    args = []
    for part in signature:
        if _is_tensor(part):
            made = torch.empty_strided(part[1], part[2], dtype=torch.float32)
            args.append(made.fill_(0.5))
        else:
            args.append(list(part) if isinstance(part, tuple) else part)
    return args


class _settings_kept:  # noqa: N801 - used as a function
    """Restore the process-wide flags that the trial changes."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def __enter__(self) -> None:
        self.onednn = self.torch._C._get_mkldnn_enabled()
        self.mkl = _mkl(self.torch)
        self.dynamic = self.mkl.mkl_serv_get_dynamic() if self.mkl else None

    def __exit__(self, *_exception: Any) -> None:
        self.torch._C._set_mkldnn_enabled(self.onednn)
        if self.mkl:
            self.mkl.mkl_serv_set_dynamic(self.dynamic)


def _mkl(torch: Any) -> Any:
    """MKL inside PyTorch, whose "dynamic" flag torch.set_num_threads changes for good."""
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    try:
        library = ctypes.CDLL(os.path.join(folder, "libtorch_cpu.so"))
        library.mkl_serv_get_dynamic.restype = ctypes.c_int
        library.mkl_serv_set_dynamic.argtypes = [ctypes.c_int]
    except (OSError, AttributeError):
        return None
    return library


def _paths(torch: Any) -> list[Path]:
    now = torch.get_num_threads()
    paths = [Path("now", "", _as_it_is)]
    ranks = max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1") or 1))
    most = max(1, int(processors() / ranks))
    for count in sorted({1, (most + 1) // 2, most} - {now}):
        text = f"OMP_NUM_THREADS={count}, or torch.set_num_threads({count})"
        paths.append(Path(f"{count} threads instead of {now}", text, _as_it_is, count))
    if not torch.backends.mkldnn.is_available():
        return paths
    if not torch._C._get_mkldnn_enabled():
        text = "torch.backends.mkldnn.enabled = True"
        paths.append(Path("oneDNN, which is switched off,", text, _as_it_is, onednn=True))
    if hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        text = "put these lines at the top of the script:\n" + ONEDNN_LINES
        paths.append(Path("oneDNN for matrix products", text, _onednn))
    text = "model = model.to(memory_format=torch.channels_last), and the images alike"
    paths.append(Path("the channels-last memory format", text, _channels_last))
    return paths


def _as_it_is(torch: Any, name: str, args: Any) -> Any:
    operator = getattr(torch.ops.aten, name)
    return lambda: operator(*args)


def _onednn(torch: Any, name: str, args: Any) -> Any:
    linear = torch.ops.mkldnn._linear_pointwise
    if name == "mm":
        a, b = args[:2]
        return lambda: linear(a, b.t(), None, "none", [], "")
    if name == "addmm" and args[0].dim() == 1:
        bias, a, b = args[:3]
        return lambda: linear(a, b.t(), bias, "none", [], "")
    return None


def _channels_last(torch: Any, name: str, args: Any) -> Any:
    if name not in ("convolution", "convolution_backward"):
        return None
    images = [a for a in args if isinstance(a, torch.Tensor) and a.dim() == 4]
    last = torch.channels_last
    if not images or all(a.is_contiguous(memory_format=last) for a in images):
        return None
    turned = [
        a.contiguous(memory_format=last) if isinstance(a, torch.Tensor) and a.dim() == 4 else a
        for a in args
    ]
    operator = getattr(torch.ops.aten, name)
    return lambda: operator(*turned)


def _try_paths(torch: Any, chosen: Any, seconds: float) -> Any:
    """Time the paths in turns.

    Returns:
        The paths with their timed rounds: seconds that the chosen operations take in a step, and
        for the same rounds those of the path that is in use now. A path that was far slower in
        the first round, or slower in most of the first three, is not tried on.
    """
    trials = []
    for path in _paths(torch):
        runs = [path.runner(torch, name, args) for name, args, _ in chosen]
        if any(runs):
            trials.append(Trial(path, runs, [calls for _, _, calls in chosen]))
    base = trials[0]
    for trial in trials:
        trial.runs = [mine or usual for mine, usual in zip(trial.runs, base.runs)]  # noqa: B905
    threads, enabled = torch.get_num_threads(), torch._C._get_mkldnn_enabled()
    small = torch.ones(128, 128)
    deadline, longest = time.perf_counter() + seconds, 0.0
    with torch.no_grad():
        for turn in range(MOST_ROUNDS):
            started = time.perf_counter()
            for trial in trials:
                torch.set_num_threads(trial.path.threads or threads)
                onednn = trial.path.onednn
                torch._C._set_mkldnn_enabled(enabled if onednn is None else onednn)
                torch.mm(small, small)  # wakes this path's pool of threads
                trial.take(base, keep=turn > 0)  # the first turn makes the kernels
            if turn in (1, 3):  # one turn may have been disturbed: only a hopeless path goes by it
                least = HOPELESS if turn == 1 else 1.0
                trials = [t for t in trials if t is base or statistics.median(t.ratios()) > least]
            longest = max(longest, time.perf_counter() - started)
            if len(trials) == 1 or time.perf_counter() + longest > deadline:
                break
    return trials


class Trial:
    """A path, the operations to run along it, and what they took."""

    def __init__(self, path: Any, runs: Any, calls: Any) -> None:
        self.path, self.runs, self.calls = path, runs, calls
        self.seconds: list[float] = []
        self.usual: list[float] = []

    def take(self, base: Any, keep: Any) -> Any:
        """Time every operation once; ``base`` has been timed in the same turn."""
        total = 0.0
        for run, calls in zip(self.runs, self.calls):  # noqa: B905
            start = time.perf_counter()
            run()
            total += (time.perf_counter() - start) * calls
        if keep:
            self.seconds.append(total)
            self.usual.append(base.seconds[-1])

    def ratios(self) -> Any:
        """How many times as fast as now, by turn."""
        return [usual / mine for usual, mine in zip(self.usual, self.seconds)]  # noqa: B905


def _verdict(trials: Any, step_seconds: float) -> tuple[str, str, str] | None:
    best, gain = None, LEAST_GAIN
    for trial in trials[1:]:
        if len(trial.seconds) < LEAST_ROUNDS:
            continue
        share = min(1.0, statistics.median(trial.usual) / step_seconds)
        ratio = statistics.quantiles(trial.ratios(), n=4)[0]
        whole = 1 / (1 - share + share / ratio)
        if whole > gain:
            best, gain = trial, whole
    if best is None:
        return None
    now, then = statistics.median(best.usual) * 1e3, statistics.median(best.seconds) * 1e3
    message = (
        f"{best.path.title} would run this step about {gain:.2f} times as fast, with the same "
        f"accuracy: its heaviest float32 operations take {now:.3g} ms of the "
        f"{step_seconds * 1e3:.3g} ms of a step now and {then:.3g} ms so "
        f"(median of {len(best.seconds)} turns)"
    )
    return "faster_setting", message, best.path.remedy
