"""What libraries around PyTorch do that its own calls do not show: fetch ahead, save, compile."""

from __future__ import annotations

import functools
from typing import Any

from ..importing import when_imported
from .torch_clock import DATA


def watch(tap: Any, modules: Any) -> None:
    """Act on each library when it is imported.

    Args:
        tap: the ``Tap`` of this process.
        modules: the ``ModuleWatch`` of this process.
    """
    when_imported("accelerate.data_loader", lambda m: _watch_accelerate(m, tap))
    for name in ("lightning.pytorch.loops.fetchers", "pytorch_lightning.loops.fetchers"):
        when_imported(name, lambda m: _watch_lightning(m, tap))
    for name, functions in (
        ("safetensors.torch", ("save_file", "save_model")),
        ("torch.distributed.checkpoint.state_dict_saver", ("save",)),
    ):
        when_imported(name, functools.partial(_watch_saves, tap, functions))
    # the probe's own frames are none of dynamo's business
    when_imported("torch._dynamo.trace_rules", lambda m: m.add(__package__.partition(".")[0]))
    when_imported("torch._dynamo.utils", lambda m: _show_dynamo_the_call(m, modules))
    when_imported("torch._dynamo.eval_frame", lambda m: _show_the_call(m.OptimizedModule, modules))
    when_imported("torch._dynamo.callback", lambda m: _watch_compilation(m, tap, modules))


def _watch_accelerate(module: Any, tap: Any) -> None:
    """Its loaders fetch one batch ahead; a batch counts when it is handed out."""
    for name in ("DataLoaderShard", "DataLoaderDispatcher"):
        cls = getattr(module, name, None)
        if cls is not None:
            cls.__iter__ = _handing_out(cls.__iter__, tap)


def _handing_out(iterate: Any, tap: Any) -> Any:
    @functools.wraps(iterate)
    def handed_out(loader: Any) -> Any:
        return tap.iterate(iterate(loader), id(loader))

    return handed_out


def _watch_lightning(module: Any, tap: Any) -> None:
    """Its fetcher reads ahead where a loader has no length; a batch counts when it is returned."""
    cls = getattr(module, "_PrefetchDataFetcher", None)
    if cls is None:
        return
    advance, begin = cls.__next__, cls.__iter__

    @functools.wraps(advance)
    def next_batch(fetcher: Any) -> Any:
        return tap.fetch(advance, fetcher, id(fetcher))

    @functools.wraps(begin)
    def iterate(fetcher: Any) -> Any:
        return tap.timed(DATA, begin, (fetcher,), {})

    cls.__next__, cls.__iter__ = next_batch, iterate


def _watch_saves(tap: Any, functions: Any, module: Any) -> None:
    for name in functions:
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _pausing(original, tap))


def _pausing(original: Any, tap: Any) -> Any:
    @functools.wraps(original)
    def saved(*args: Any, **kwargs: Any) -> Any:
        return tap.paused("checkpoint", original, args, kwargs)

    return saved


def _show_dynamo_the_call(module: Any, modules: Any) -> None:
    """It keeps the module's call to recognise it by; it must not keep ours."""
    if getattr(module, "unpatched_nn_module_call", None) is modules.searched:
        module.unpatched_nn_module_call = modules.pristine


def _show_the_call(cls: Any, modules: Any) -> None:
    """``torch.compile(module)`` binds the module's call, which must be its own."""
    make = cls.__init__

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        modules.tracing(True)
        try:
            return make(*args, **kwargs)
        finally:
            modules.tracing(False)

    cls.__init__ = made


def _watch_compilation(module: Any, tap: Any, modules: Any) -> None:
    """Its handler tells when a compilation begins and ends; callbacks there can be cleared."""
    cls = module.CompilationCallbackHandler
    begin, end = cls.run_start_callbacks, cls.run_end_callbacks
    started = []

    @functools.wraps(begin)
    def begins(handler: Any, *args: Any) -> Any:
        modules.tracing(True)
        started.append(tap.begin_pause())
        return begin(handler, *args)

    @functools.wraps(end)
    def ends(handler: Any, *args: Any) -> Any:
        try:
            return end(handler, *args)
        finally:
            if started:
                if started.pop():
                    tap.end_pause("compile")
                modules.tracing(False)

    cls.run_start_callbacks, cls.run_end_callbacks = begins, ends
