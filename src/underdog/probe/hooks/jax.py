"""The hook of JAX: which of its calls are watched. What they mean is in ``jax_steps``.

A compiled function in whose tracing a gradient is taken is a training function, and each of its
calls is a step. What ``jax.jit`` and ``jax.pmap`` give is therefore stood in for by an object that
passes everything on. JAX's own functions keep the ``jit`` that they imported before.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from ..importing import when_imported
from .jax_samples import array_leaves
from .jax_steps import StepWatch

WATCHES = "jax"


def attach(module: Any, recorder: Any) -> None:
    """Watch a JAX that was just imported.

    Args:
        module: ``jax``.
        recorder: where the steps go.
    """
    jax = module
    watch = StepWatch(jax, recorder)
    recorder.process("jax", str(jax.__version__))
    for name in ("jit", "pmap"):
        setattr(jax, name, _observing(getattr(jax, name), watch, mapped=name == "pmap"))
    for name in ("grad", "value_and_grad"):
        setattr(jax, name, _gradient(getattr(jax, name), watch))
    jax.vjp = _called(jax.vjp, lambda args: watch.gradient(args[1:]))
    for name in ("scan", "fori_loop", "while_loop"):
        setattr(jax.lax, name, _looped(getattr(jax.lax, name), watch))
    jax.block_until_ready = _then(jax.block_until_ready, watch.looked_at)
    when_imported("optax", lambda optax: _watch_optax(optax, watch))
    jax.monitoring.register_event_duration_secs_listener(watch.compiled)
    recorder.before_flush(lambda last: watch.finish() if last else None)


def _watch_optax(optax: Any, watch: StepWatch) -> None:
    optax.apply_updates = _called(optax.apply_updates, watch.updated)


def _observing(make: Any, watch: StepWatch, mapped: bool) -> Any:
    """``jax.jit`` or ``jax.pmap``, giving observed functions, as a decorator with options too."""

    @functools.wraps(make)
    def maker(*args: Any, **kwargs: Any) -> Any:
        made = make(*args, **kwargs)
        if not hasattr(made, "lower"):  # called with options alone: a decorator
            return lambda function: Observed(made(function), watch.workload(function, mapped))
        function = args[0] if args else kwargs.get("fun", made)
        return Observed(made, watch.workload(function, mapped))

    return maker


class Observed:
    """Stands in for a compiled function: calls are watched, all else is passed on."""

    def __init__(self, target: Any, workload: Any) -> None:
        self._target = target
        self._workload = workload
        functools.update_wrapper(self, target)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._workload.call(self._target, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name in ("_target", "_workload"):  # not there yet, as in a copy
            raise AttributeError(name)
        return getattr(self._target, name)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """As of the compiled function; what it compiles to is observed too."""
        lowered = self._workload.tracing(self._target.lower, args, kwargs)
        return _Lowered(lowered, self._workload)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """As of the compiled function."""
        return self._workload.tracing(self._target.trace, args, kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """As of the compiled function."""
        return self._workload.tracing(self._target.eval_shape, args, kwargs)

    def clear_cache(self) -> None:
        """As of the compiled function."""
        self._target.clear_cache()

    def __reduce__(self) -> Any:
        return self._target.__reduce__()

    def __repr__(self) -> str:
        return repr(self._target)


class _Lowered:
    """Stands in for a lowered function: what it compiles to is observed, all else passed on."""

    def __init__(self, target: Any, workload: Any) -> None:
        self._target = target
        self._workload = workload

    def __getattr__(self, name: str) -> Any:
        if name in ("_target", "_workload"):
            raise AttributeError(name)
        return getattr(self._target, name)

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """The compiled function, observed."""
        return Observed(self._target.compile(*args, **kwargs), self._workload)


def _gradient(make: Any, watch: StepWatch) -> Any:
    """``jax.grad`` or ``jax.value_and_grad``: the functions they give tell when they are called."""

    @functools.wraps(make)
    def maker(function: Any, argnums: Any = 0, *options: Any, **more: Any) -> Any:
        made = make(function, argnums, *options, **more)

        @functools.wraps(made)
        def gradient(*args: Any, **kwargs: Any) -> Any:
            numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)
            asked = [args[n] for n in numbers if -len(args) <= n < len(args)]
            watch.gradient(asked)
            start = time.perf_counter()
            out = made(*args, **kwargs)
            watch.after_gradient(function, args, kwargs, out, start)
            return out

        return gradient

    return maker


def _then(function: Any, tell: Any) -> Any:
    """The function, telling after each call."""

    @functools.wraps(function)
    def teller(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            tell()

    return teller


def _called(function: Any, tell: Any) -> Any:
    """The function, telling of each call before it."""

    @functools.wraps(function)
    def teller(*args: Any, **kwargs: Any) -> Any:
        tell(args)
        return function(*args, **kwargs)

    return teller


def _length(watch: StepWatch, args: Any, kwargs: Any) -> Any:
    """How often ``scan(f, init, xs, length)`` runs its body."""
    xs = args[2] if len(args) > 2 else kwargs.get("xs")
    arrays = array_leaves(watch.jax, xs)
    return int(arrays[0].shape[0]) if arrays else kwargs.get("length")


def _looped(loop: Any, watch: StepWatch) -> Any:
    @functools.wraps(loop)
    def looper(*args: Any, **kwargs: Any) -> Any:
        watch.loops.append(_length(watch, args, kwargs) if loop.__name__ == "scan" else None)
        try:
            return loop(*args, **kwargs)
        finally:
            watch.loops.pop()

    return looper
