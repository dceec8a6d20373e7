"""What a PyTorch step asks of any machine, found without running it again.

The outermost modules of one step are copied without their data, and the copies are run forward
and backward on tensors that have a shape, a format and a device but no memory (PyTorch's fake
tensors). So nothing of the user's run is read or changed, and fused attention, autocast and
checkpointing behave as they do in the run.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import random
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from .torch_copy import UnsupportedError, copy_without_data, describe, empty_like
from .torch_count import OutOfTimeError, operation_counter, tensors_in

MOST_SECONDS = 2.0  # of the processor: a busy machine makes the pause longer, not the profile fail


class Call:
    """One call of an outermost module: the module, its inputs' shapes, and the modes around it."""

    def __init__(self, torch: Any, module: Any, args: Any, kwargs: Any) -> None:
        self.module = unwrap(torch, module)
        self.compiled = "_orig_mod" in getattr(module, "_modules", ()) or bool(
            getattr(module, "_compiled_call_impl", None)
        )
        self.key, self.inputs = describe(torch, (args, kwargs))
        self.shapes = [list(shape) for shape, *_ in self.inputs]
        self.pattern = _pattern(torch, (args, kwargs))
        self.grad = torch.is_grad_enabled()
        self.autocast = _autocast(torch)
        self.times = 1


class StepShapes:
    """Collects the calls of one step; equal ones once, with how often they came."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.calls: dict[Any, Call] = {}

    def see(self, module: Any, args: Any, kwargs: Any) -> None:
        """Note one call of an outermost module. The tensors are not kept."""
        call = Call(self.torch, module, args, kwargs)
        key = (id(call.module), call.key, call.grad, str(call.autocast))
        known = self.calls.setdefault(key, call)
        if known is not call:
            known.times += 1


def unwrap(torch: Any, module: Any) -> Any:
    """The module that a compiler or a data-parallel wrapper holds."""
    wrappers = ("DistributedDataParallel", "DataParallel")
    while True:
        if "_orig_mod" in getattr(module, "_modules", ()):
            module = module._modules["_orig_mod"]
        elif type(module).__name__ in wrappers and isinstance(
            getattr(module, "module", None), torch.nn.Module
        ):
            module = module.module
        else:
            return module


class _Tensor:
    """Stands for the i-th tensor of a call in its pattern."""

    def __init__(self, index: int) -> None:
        self.index = index


def _pattern(torch: Any, tree: Any) -> Any:
    """The call's arguments with every tensor replaced, or the reason why that cannot be done."""
    count = iter(range(sys.maxsize))

    def strip(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return _Tensor(next(count))
        if isinstance(item, (list, tuple)):
            parts = [strip(i) for i in item]
            return type(item)(*parts) if hasattr(item, "_fields") else type(item)(parts)
        if isinstance(item, dict):
            made = [(k, strip(v)) for k, v in item.items()]
            return dict(made)
        if isinstance(item, (int, float, complex, str, bytes, type(None), torch.dtype)):
            return item
        return pickle.loads(pickle.dumps(item))

    try:
        return strip(tree)
    except Exception as error:
        return UnsupportedError(f"an argument of the model: {_short(error)}")


def _autocast(torch: Any) -> Any:
    """``[(device type, dtype)]`` for which autocast is on."""
    states = []
    for kind in ("cpu", "cuda"):
        try:
            if torch.is_autocast_enabled(kind):
                states.append((kind, torch.get_autocast_dtype(kind)))
        except TypeError:  # PyTorch before 2.4 asks by separate functions
            suffix = "_cpu" if kind == "cpu" else ""
            gpu = "_cpu" if kind == "cpu" else "_gpu"
            if getattr(torch, f"is_autocast{suffix}_enabled")():
                states.append((kind, getattr(torch, f"get_autocast{gpu}_dtype")()))
    return states


class Result:
    """``fields`` of the profile record, ``notes`` as (code, message, remedy), and the step's
    counted ``operations``: {(operator, signature): [calls, flops]}."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.notes: list[tuple[str, str, str]] = []
        self.operations: dict[Any, list[float]] = {}


def profile_step(
    torch: Any, shapes: Any, optimizers: Sequence[Any], samples: float | None
) -> Result:
    """What one step asks of any machine.

    Args:
        torch: the module.
        shapes: the ``StepShapes`` of the step.
        optimizers: those that updated the weights; their state is counted, not changed.
        samples: samples of the step, or None where unknown.

    Returns:
        A ``Result``; a field that could not be found out is absent, and a note says why.
    """
    result = Result()
    calls = list(shapes.calls.values())
    _memory_fields(torch, calls, optimizers, result.fields)
    result.fields["input_shapes"] = [s for c in calls for s in c.shapes]
    if samples is not None and samples > 0:
        result.fields["batch_size"] = samples
    if not calls:
        result.notes.append(_incomplete("no call of a torch.nn.Module was seen in the step"))
        return result
    try:
        with _untouched(torch):
            count = _count(torch, calls)
    except Exception as error:
        result.notes.append(_incomplete(_short(error)))
    else:
        _count_fields(count, samples, result)
    return result


def _incomplete(reason: Any) -> tuple[str, str, str]:
    return (
        "profile_incomplete",
        f"the model's operations could not be counted: {reason}",
        "predictions for other machines will be wider; measure on those that matter",
    )


def _short(error: Any) -> str:
    if isinstance(error, OutOfTimeError):
        return f"it took longer than {MOST_SECONDS:g} s of processor time"
    lines = str(error).strip().splitlines() or [""]
    return (f"{type(error).__name__}: {lines[0]}")[:200]


def _count_fields(count: Any, samples: float | None, result: Any) -> None:
    fields = result.fields
    result.operations = count["operations"]
    if count["activation_bytes"]:
        fields["activation_bytes"] = count["activation_bytes"]
    if count["formats"]:
        fields["number_format"] = max(count["formats"], key=count["formats"].get)
    if samples is not None and samples > 0:
        if count["flops"]:
            fields["flops_per_sample"] = count["flops"] / samples
            fields["forward_flops_per_sample"] = count["forward_flops"] / samples
        moved = count["traffic_bytes"] + _optimizer_traffic(fields)
        fields["memory_traffic_bytes_per_sample"] = moved / samples


def _optimizer_traffic(fields: Any) -> int:
    """Bytes of one update: weights and state are read and written, gradients read."""
    known = ("parameter_bytes", "optimizer_bytes", "gradient_bytes")
    weights, state, gradients = (fields.get(name, 0) for name in known)
    return int(2 * weights + 2 * state + gradients)


def _memory_fields(torch: Any, calls: Any, optimizers: Sequence[Any], fields: Any) -> None:
    parameters = {id(p): p for c in calls for p in c.module.parameters()}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            parameters.update((id(p), p) for p in group["params"])
    weights = list(parameters.values())
    if not weights:
        return
    trained = [p for p in weights if p.requires_grad]
    state = {
        id(t): t for o in optimizers for s in o.state.values() for t in tensors_in(torch, dict(s))
    }
    fields["parameters"] = sum(p.numel() for p in weights)
    fields["parameter_bytes"] = sum(p.numel() * p.element_size() for p in weights)
    fields["gradient_bytes"] = sum(
        p.numel() * (p if p.grad is None else p.grad).element_size() for p in trained
    )
    if optimizers:
        fields["optimizer_bytes"] = sum(t.numel() * t.element_size() for t in state.values())
    used = {str(p.device) for p in weights if p.device.type not in ("cpu", "meta")}
    fields["uses_accelerator"] = bool(used)
    fields["accelerators_used"] = len(used)


@contextlib.contextmanager
def _untouched(torch: Any) -> Iterator[None]:
    """Nothing that the block does reaches the user's run: random numbers, hooks, warnings, logs."""
    numpy = sys.modules.get("numpy")
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    states = (
        random.getstate(),
        torch.get_rng_state(),
        numpy.random.get_state() if numpy else None,
        torch.cuda.get_rng_state_all() if cuda else None,
    )
    log = logging.getLogger("torch._subclasses.fake_tensor")
    disabled, log.disabled = log.disabled, True
    hooks = _global_hooks(torch)
    kept = [dict(h) for h in hooks]
    for h in hooks:
        h.clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for h, k in zip(hooks, kept):  # noqa: B905
            h.update(k)
        log.disabled = disabled
        random.setstate(states[0])
        torch.set_rng_state(states[1])
        if numpy:
            numpy.random.set_state(states[2])
        if cuda:
            torch.cuda.set_rng_state_all(states[3])


def _global_hooks(torch: Any) -> list[Any]:
    """Those of ``torch.nn.modules.module.register_module_*_hook``, the probe's own among them."""
    names = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks")
    more = ("_global_backward_pre_hooks", "_global_forward_hooks_always_called")
    found = (getattr(torch.nn.modules.module, name, None) for name in names + more)
    return [hooks for hooks in found if hooks is not None]


def _count(torch: Any, calls: Any) -> dict[str, Any]:
    from torch._subclasses.fake_tensor import FakeTensorMode

    total: dict[str, Any] = dict.fromkeys(
        ("flops", "forward_flops", "traffic_bytes", "activation_bytes"), 0
    )
    total["formats"], total["operations"] = {}, {}
    with FakeTensorMode(allow_non_fake_inputs=True) as fake, _eager(torch):
        (torch.ones(2, requires_grad=True) * 2).sum().backward()  # the first use imports a lot
        deadline = time.process_time() + MOST_SECONDS
        copies: dict[int, Any] = {}
        for call in calls:
            module = copies.get(id(call.module))
            if module is None:
                module = copies[id(call.module)] = copy_without_data(torch, call.module, fake)
            counter = operation_counter(torch, deadline)
            forward, saved = _run(torch, call, module, counter)
            tally = counter.tally
            total["flops"] += tally.flops * call.times
            total["forward_flops"] += forward * call.times
            total["traffic_bytes"] += tally.traffic_bytes * call.times
            total["activation_bytes"] += saved
            for name, flops in tally.formats.items():
                total["formats"][name] = total["formats"].get(name, 0) + flops * call.times
            for key, (times, flops) in tally.operations.items():
                entry = total["operations"].setdefault(key, [0, 0])
                entry[0] += times * call.times
                entry[1] += flops * call.times
    return total


@contextlib.contextmanager
def _eager(torch: Any) -> Iterator[None]:
    """Compiled functions inside the model run as written."""
    compiler: Any = getattr(torch, "compiler", None)
    if "torch._dynamo" in sys.modules and hasattr(compiler, "set_stance"):
        with compiler.set_stance("force_eager"):
            yield
    else:
        yield


def _run(torch: Any, call: Any, module: Any, counter: Any) -> tuple[int, int]:
    """Run a copy forward and, where gradients were on, backward.

    Returns:
        Forward flops, and the bytes of the distinct tensors that autograd kept for backward,
        parameters not included.
    """
    if isinstance(call.pattern, UnsupportedError):
        raise call.pattern
    args, kwargs = _fill(torch, call)
    own = {p.untyped_storage()._cdata for p in module.parameters()}
    kept = {}

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = (storage.nbytes(), storage)
        return tensor

    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.set_grad_enabled(call.grad))
        hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
        with hooks, counter, contextlib.ExitStack() as casts:
            for kind, dtype in call.autocast:
                casts.enter_context(torch.autocast(kind, dtype=dtype, enabled=True))
            out = module(*args, **kwargs)
        forward, saved = counter.tally.flops, sum(size for size, _ in kept.values())
        kept.clear()
        ends = [t for t in _outputs(torch, out) if t.requires_grad and t.is_floating_point()]
        if call.grad and ends:
            with counter:
                torch.autograd.backward(ends, [torch.ones_like(t) for t in ends])
    return forward, saved


def _outputs(torch: Any, out: Any) -> Any:
    """Tensors of a module's output: nested containers, or an object's attributes."""
    found = tensors_in(torch, out)
    if not found and hasattr(out, "__dict__"):
        found = tensors_in(torch, vars(out))
    return found


def _fill(torch: Any, call: Any) -> Any:
    """The call's arguments with tensors that have no memory."""

    def fill(item: Any) -> Any:
        if isinstance(item, _Tensor):
            return empty_like(torch, call.inputs[item.index])
        if isinstance(item, (list, tuple)):
            parts = [fill(i) for i in item]
            return type(item)(*parts) if hasattr(item, "_fields") else type(item)(parts)
        if isinstance(item, dict):
            return {k: fill(v) for k, v in item.items()}
        return item

    return fill(call.pattern)
