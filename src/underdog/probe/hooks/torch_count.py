"""Counting what PyTorch operations do: floating-point operations, bytes, number formats.

The formulas are those of ``torch.utils.flop_counter`` (2 per multiply-add; matrix products,
convolutions and attention, as in Kaplan et al. 2020 and nanoGPT), with the fused operations of
CPUs and cuDNN added that it lacks. Element-wise operations count as bytes, not as flops.
"""

from __future__ import annotations

import time
from typing import Any


class OutOfTimeError(Exception):
    """The count took longer than it may."""


def formulas(torch: Any) -> dict[Any, Any]:
    """Map of operator packet to ``f(*args, out_val=…, **kwargs) -> flops``."""
    from torch.utils import flop_counter

    table: dict[Any, Any] = dict(flop_counter.flop_registry)
    forward: Any = flop_counter.sdpa_flop_count
    backward: Any = flop_counter.sdpa_backward_flop_count

    def attend(q: Any, k: Any, v: Any, *_args: Any, **_kwargs: Any) -> Any:
        return forward(q.shape, k.shape, v.shape)

    def attend_backward(grad: Any, q: Any, k: Any, v: Any, *_args: Any, **_kwargs: Any) -> Any:
        return backward(grad.shape, q.shape, k.shape, v.shape)

    extra = {
        "_scaled_dot_product_flash_attention_for_cpu": attend,
        "_scaled_dot_product_flash_attention_for_cpu_backward": attend_backward,
        "_scaled_dot_product_fused_attention_overrideable": attend,
        "_scaled_dot_product_fused_attention_overrideable_backward": attend_backward,
        "mkldnn_rnn_layer": _mkldnn_rnn(2),
        "mkldnn_rnn_layer_backward": _mkldnn_rnn(4),
        "_cudnn_rnn": _cudnn_rnn(2),
        "_cudnn_rnn_backward": _cudnn_rnn(4),
        "mv": lambda matrix, *_args, **_kwargs: 2 * matrix.numel(),
        "addmv": lambda _bias, matrix, *_args, **_kwargs: 2 * matrix.numel(),
        "dot": lambda vector, *_args, **_kwargs: 2 * vector.numel(),
    }
    for name, formula in extra.items():
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None:
            table.setdefault(packet, formula)
    return table


def _mkldnn_rnn(per_weight: int) -> Any:
    def count(x: Any, w_input: Any, w_hidden: Any, *_args: Any, **_kwargs: Any) -> Any:
        positions = x.numel() // max(x.shape[-1], 1)
        return per_weight * positions * (w_input.numel() + w_hidden.numel())

    return count


def _cudnn_rnn(per_weight: int) -> Any:
    def count(x: Any, weights: Any, *_args: Any, **_kwargs: Any) -> Any:
        positions = x.numel() // max(x.shape[-1], 1)
        return per_weight * positions * sum(w.numel() for w in weights if w.dim() > 1)

    return count


class Tally:
    """The sum of what operations did.

    ``flops`` and ``traffic_bytes`` are totals; ``formats`` is flops by number format;
    ``operations`` maps (operator, argument signature) of the counted operators to
    ``[calls, flops]``. ``traffic_bytes`` adds the bytes of every operator's inputs and outputs:
    what moves if nothing is fused and nothing stays in a cache, so it is an upper estimate.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.table = formulas(torch)
        self.flops = 0
        self.traffic_bytes = 0
        self.formats: dict[str, float] = {}
        self.operations: dict[Any, list[float]] = {}

    def count(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """Add one call of an operator."""
        torch, packet = self._torch, func._overloadpacket
        inputs = tensors_in(torch, (args, kwargs))
        if packet in self.table:
            flops = self.table[packet](*args, **kwargs, out_val=out)
            self.flops += flops
            name = number_format(torch, inputs)
            self.formats[name] = self.formats.get(name, 0) + flops
            key = (packet.__name__, signature(torch, args))
            entry = self.operations.setdefault(key, [0, 0])
            entry[0] += 1
            entry[1] += flops
        if not getattr(func, "is_view", False) and inputs:
            self.traffic_bytes += sum(map(bytes_of, inputs + tensors_in(torch, out)))


def operation_counter(torch: Any, deadline: float = float("inf")) -> Any:
    """A dispatch mode that adds what runs under it to its ``tally``.

    Raises (inside the counted code):
        OutOfTimeError: ``time.process_time()`` passed ``deadline``.
    """
    from torch.utils import _python_dispatch

    dispatch_mode: Any = _python_dispatch.TorchDispatchMode

    class OperationCounter(dispatch_mode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tally = Tally(torch)

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            # An exception raised under prim.device would abort the interpreter.
            if func.namespace == "prim":
                return func(*args, **kwargs)
            if time.process_time() > deadline:
                raise OutOfTimeError
            if func._overloadpacket not in self.tally.table:
                with self:
                    parts = func.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
            out = func(*args, **kwargs)
            self.tally.count(func, args, kwargs, out)
            return out

    return OperationCounter()


def tensors_in(torch: Any, tree: Any) -> list[Any]:
    """The tensors in nested lists, tuples and dictionaries, in order."""
    found, stack = [], [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, torch.Tensor):
            found.append(item)
        elif isinstance(item, (list, tuple)):
            stack.extend(reversed(item))
        elif isinstance(item, dict):
            stack.extend(reversed(list(item.values())))
    return found


def bytes_of(tensor: Any) -> int:
    """Bytes of the elements that a tensor reaches; those of an expanded one count once."""
    size = int(tensor.numel() * tensor.element_size())
    try:
        return min(size, int(tensor.untyped_storage().nbytes()))
    except (RuntimeError, NotImplementedError):
        return size


def number_format(torch: Any, inputs: Any) -> str:
    """``float32``, ``bfloat16``, …; ``tf32`` where the accelerator is allowed to round to it."""
    floats = [t for t in inputs if t.is_floating_point()]
    if not floats:
        return "integer"
    name = str(floats[0].dtype).replace("torch.", "")
    if name == "float32" and floats[0].device.type == "cuda" and _tf32(torch):
        return "tf32"
    return name


def _tf32(torch: Any) -> bool:
    try:
        return bool(torch.get_float32_matmul_precision() != "highest")
    except RuntimeError:  # the old and the new way of setting it are mixed
        return False


def signature(torch: Any, args: Any) -> tuple[Any, ...]:
    """Shapes, strides and formats of tensors and the plain values: enough to repeat a call."""
    return tuple(_signature(torch, a) for a in args)


def _signature(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return ("tensor", tuple(value.shape), tuple(value.stride()), str(value.dtype))
    if isinstance(value, (list, tuple)):
        return tuple(_signature(torch, v) for v in value)
    return value if isinstance(value, (int, float, bool, str, type(None))) else str(value)
