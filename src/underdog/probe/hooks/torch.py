"""The hook of PyTorch: which of its calls are watched. What they mean is the observer's."""

from __future__ import annotations

import functools
import os
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from . import torch_libraries
from .torch_clock import COMMUNICATION, TRANSFER
from .torch_modules import ModuleWatch
from .torch_observer import Observer, TrackedFetch
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
    observer = Observer(torch, recorder)
    watch = ModuleWatch(torch.nn.Module, observer)
    recorder.process("torch", str(torch.__version__))
    recorder.fetcher = TrackedFetch(observer)
    _watch_loaders(torch.utils.data.dataloader, observer)
    _watch_autograd(torch.autograd, observer)
    _watch_optimizers(torch, observer)
    _wrap(torch, "save", functools.partial(observer.paused, "checkpoint"))
    _watch_distributed(torch, observer, recorder)
    if torch.backends.cuda.is_built():
        _watch_accelerator(torch, observer, recorder)
    torch_libraries.watch(observer, watch)
    _watch_steps(torch, observer, watch, recorder)
    os.register_at_fork(after_in_child=observer.reset)


def _wrap(owner: Any, name: str, around: Callable[[Any, Any, Any], Any]) -> None:
    """Replace ``owner.name`` by ``around(original, args, kwargs)``, looking as it did."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return around(original, args, kwargs)

    setattr(owner, name, wrapper)


def _watch_loaders(dataloader: Any, observer: Observer) -> None:
    iterator_class = dataloader._BaseDataLoaderIter
    map_style = dataloader._DatasetKind.Map
    fetch, asked_next = iterator_class.__next__, iterator_class._next_index

    @functools.wraps(asked_next)
    def next_index(iterator: Any) -> Any:
        index = asked_next(iterator)
        if iterator._dataset_kind == map_style and isinstance(index, (list, tuple)):
            sizes = iterator.__dict__.setdefault("_underdog_sizes", deque())
            sizes.append(len(index))
        return index

    @functools.wraps(fetch)
    def fetch_next(iterator: Any) -> Any:
        def expected() -> Any:
            sizes = iterator.__dict__.get("_underdog_sizes")
            return sizes.popleft() if sizes else None, iterator._num_yielded == 1

        sampler = id(iterator._index_sampler)  # the loader's own, so the same in each pass
        return observer.fetch(lambda: fetch(iterator), sampler, expected, iterator)

    iterator_class._next_index = next_index
    iterator_class.__next__ = fetch_next


def _watch_autograd(autograd: Any, observer: Observer) -> None:
    seen_backward = [False]

    def backward(call: Any, args: Any, kwargs: Any) -> Any:
        seen_backward[0] = True
        return observer.backward(call, args, kwargs, is_step=True)

    def grad(call: Any, args: Any, kwargs: Any) -> Any:
        # the only gradients of a functional script; else a part of some loss
        return observer.backward(call, args, kwargs, is_step=not seen_backward[0])

    _wrap(autograd, "backward", backward)
    _wrap(autograd, "grad", grad)


def _watch_optimizers(torch: Any, observer: Observer) -> None:
    optimizer_module = sys.modules["torch.optim.optimizer"]  # no attribute of torch.optim

    def made(call: Any, args: Any, kwargs: Any) -> Any:
        observer.optimizers += 1
        return call(*args, **kwargs)

    def before(optimizer: Any, args: Any, kwargs: Any) -> None:
        observer.before_update(optimizer)

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        observer.after_update(optimizer, _found_infinite(optimizer))

    def scaled(call: Any, args: Any, kwargs: Any) -> Any:
        updates = observer.updates
        result = call(*args, **kwargs)
        if observer.updates == updates and len(args) > 1:
            observer.skipped(args[1])
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


def _watch_distributed(torch: Any, observer: Observer, recorder: Any) -> None:
    distributed = torch.distributed
    if not distributed.is_available():
        return
    spaces = (distributed, distributed.distributed_c10d)
    for name in COLLECTIVES.split():
        original = getattr(spaces[1], name, None)
        if original is not None:
            _wrap(spaces[1], name, functools.partial(observer.timed, COMMUNICATION))
            if getattr(spaces[0], name, None) is original:
                setattr(spaces[0], name, getattr(spaces[1], name))

    def init(call: Any, args: Any, kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        ranks = {"rank": distributed.get_rank(), "world_size": distributed.get_world_size()}
        recorder.process("torch", str(torch.__version__), **ranks)
        return result

    _wrap(spaces[1], "init_process_group", init)
    spaces[0].init_process_group = spaces[1].init_process_group


def _watch_accelerator(torch: Any, observer: Observer, recorder: Any) -> None:
    from .torch_cuda import watch_memory, watch_work

    for name in ("to", "cuda"):
        _wrap(torch.Tensor, name, functools.partial(observer.timed, TRANSFER))
    watch_work(torch, observer, recorder)
    watch_memory(torch, recorder)


def _watch_steps(torch: Any, observer: Observer, watch: ModuleWatch, recorder: Any) -> None:
    workload = Workload(torch, observer, recorder)

    def stepped(optimizer: Any, taken: Any) -> None:
        watch.after_step()
        workload.after_step(optimizer, taken)
        observer.tell_doubts()

    observer.on_step = stepped
    recorder.before_flush(lambda last: observer.finish() if last else None)
