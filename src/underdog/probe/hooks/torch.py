"""The hook of PyTorch: which of its calls are watched. What they mean is the observer's part."""

from __future__ import annotations

import functools
import os
import sys
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any

from . import torch_libraries
from .torch_clock import COMMUNICATION, TRANSFER
from .torch_modules import ModuleWatch
from .torch_observer import Observer
from .torch_tap import Tap, TrackedFetch
from .torch_workload import Workload

WATCHES = "torch"

COLLECTIVES = """
    all_gather all_gather_into_tensor all_gather_object all_reduce all_reduce_coalesced
    all_to_all all_to_all_single barrier broadcast broadcast_object_list gather monitored_barrier
    recv reduce reduce_scatter reduce_scatter_tensor scatter send
"""


def attach(module: Any, recorder: Any) -> None:
    """Watch a PyTorch that was just imported.

    Args:
        module: ``torch``.
        recorder: where the steps go.
    """
    torch = module
    observer = Observer(recorder)
    tap = Tap(observer, torch.is_grad_enabled)
    watch = ModuleWatch(torch.nn.Module, tap)
    recorder.process("torch", str(torch.__version__))
    recorder.fetcher = TrackedFetch(tap)
    _watch_loaders(torch.utils.data.dataloader, tap)
    _watch_autograd(torch.autograd, tap)
    _watch_optimizers(torch, tap)
    _wrap(torch, "save", functools.partial(tap.paused, "checkpoint"))
    _watch_distributed(torch, tap, recorder)
    if torch.backends.cuda.is_built():
        _watch_accelerator(torch, tap, recorder)
    torch_libraries.watch(tap, watch)
    _watch_steps(torch, tap, watch, recorder)


def _wrap(owner: Any, name: str, around: Callable[[Any, Any, Any], Any]) -> None:
    """Replace ``owner.name`` by ``around(original, args, kwargs)``, looking as it did."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return around(original, args, kwargs)

    setattr(owner, name, wrapper)


def _watch_loaders(dataloader: Any, tap: Tap) -> None:
    iterator_class = dataloader._BaseDataLoaderIter
    map_style = dataloader._DatasetKind.Map
    fetch, asked_next = iterator_class.__next__, iterator_class._next_index

    @functools.wraps(asked_next)
    def next_index(iterator: Any) -> Any:
        index = asked_next(iterator)
        if iterator._dataset_kind == map_style and isinstance(index, (list, tuple)):
            try:
                iterator._underdog_sizes.append(len(index))
            except AttributeError:
                iterator._underdog_sizes = deque([len(index)])
        return index

    def expected(iterator: Any) -> Any:
        sizes = getattr(iterator, "_underdog_sizes", None)
        return sizes.popleft() if sizes else None, iterator._num_yielded == 1

    @functools.wraps(fetch)
    def fetch_next(iterator: Any) -> Any:
        sampler = id(iterator._index_sampler)  # the loader's own, so the same in each pass
        return tap.fetch(fetch, iterator, sampler, expected)

    iterator_class._next_index = next_index
    iterator_class.__next__ = fetch_next


def _watch_autograd(autograd: Any, tap: Tap) -> None:
    backward, grad = autograd.backward, autograd.grad
    seen_backward = False

    @functools.wraps(backward)
    def watched_backward(*args: Any, **kwargs: Any) -> Any:
        nonlocal seen_backward
        seen_backward = True
        return tap.backward(backward, args, kwargs, True)

    @functools.wraps(grad)
    def watched_grad(*args: Any, **kwargs: Any) -> Any:
        # the only gradients of a functional script; else a part of some loss
        return tap.backward(grad, args, kwargs, not seen_backward)

    autograd.backward, autograd.grad = watched_backward, watched_grad


def _watch_optimizers(torch: Any, tap: Tap) -> None:
    optimizer_module = sys.modules["torch.optim.optimizer"]  # no attribute of torch.optim

    def made(call: Any, args: Any, kwargs: Any) -> Any:
        tap.optimizers += 1
        return call(*args, **kwargs)

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        tap.before_update(optimizer)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        tap.after_update(optimizer, _found_infinite(optimizer))

    def scaled(call: Any, args: Any, kwargs: Any) -> Any:
        updates = tap.updates
        result = call(*args, **kwargs)
        if tap.updates == updates and len(args) > 1:
            tap.skipped(args[1])
        return result

    _wrap(torch.optim.Optimizer, "__init__", made)
    optimizer_module.register_optimizer_step_pre_hook(before)
    optimizer_module.register_optimizer_step_post_hook(after)
    scaler = getattr(getattr(torch, "amp", None), "GradScaler", None) or torch.cuda.amp.GradScaler
    _wrap(scaler, "step", scaled)


def _found_infinite(optimizer: Any) -> bool:
    """A fused optimizer skips the update itself; on an accelerator asking it would wait for it."""
    found = getattr(optimizer, "found_inf", None)
    return found is not None and found.device.type == "cpu" and bool(found)


def _watch_distributed(torch: Any, tap: Tap, recorder: Any) -> None:
    distributed = torch.distributed
    if not distributed.is_available():
        return
    spaces = (distributed, distributed.distributed_c10d)
    for name in COLLECTIVES.split():
        original = getattr(spaces[1], name, None)
        if original is not None:
            _wrap(spaces[1], name, functools.partial(tap.timed, COMMUNICATION))
            if getattr(spaces[0], name, None) is original:
                setattr(spaces[0], name, getattr(spaces[1], name))

    def init(call: Any, args: Any, kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        ranks = {"rank": distributed.get_rank(), "world_size": distributed.get_world_size()}
        recorder.process("torch", str(torch.__version__), **ranks)
        return result

    _wrap(spaces[1], "init_process_group", init)
    spaces[0].init_process_group = spaces[1].init_process_group


def _watch_accelerator(torch: Any, tap: Tap, recorder: Any) -> None:
    from .torch_cuda import watch_memory, watch_work

    for name in ("to", "cuda"):
        _wrap(torch.Tensor, name, functools.partial(tap.timed, TRANSFER))
    watch_work(torch, tap, recorder)
    watch_memory(torch, recorder)


def _watch_steps(torch: Any, tap: Tap, watch: ModuleWatch, recorder: Any) -> None:
    workload = Workload(torch, tap, recorder)

    def stepped(optimizer: Any, taken: Any, seen_forward: bool) -> None:
        watch.after_step(seen_forward)
        workload.after_step(optimizer, taken)

    def before_flush(last: bool) -> None:
        if last or tap.thread == get_ident():
            tap.drain()
        if last:
            tap.observer.finish()

    def forked() -> None:
        tap.reset()
        tap.observer.reset()

    tap.observer.on_step = stepped
    recorder.before_flush(before_flush)
    os.register_at_fork(after_in_child=forked)
