"""Copies of a user's module and its inputs in which no tensor has memory."""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Iterator
from typing import Any

from .torch_count import tensors_in

MOST_OBJECTS = 300000  # of a module's copy; a module that holds its data set is not copied


class UnsupportedError(Exception):
    """A module or an input that cannot be copied without its data."""


def describe(torch: Any, tree: Any) -> tuple[str, list[Any]]:
    """``(key, [(shape, stride, dtype, device, requires_grad), …])`` of the tensors in a tree."""
    inputs = [
        (tuple(t.shape), _stride(torch, t), t.dtype, t.device, t.requires_grad)
        for t in tensors_in(torch, tree)
    ]
    return repr(inputs), inputs


def _stride(torch: Any, tensor: Any) -> Any:
    return tuple(tensor.stride()) if tensor.layout is torch.strided else None


def empty_like(torch: Any, described: Any) -> Any:
    """A tensor of a described shape, under a fake mode without memory."""
    shape, stride, dtype, device, requires_grad = described
    if stride is None:
        raise UnsupportedError("a tensor that is not strided")
    made = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    return made.requires_grad_() if requires_grad else made


class _Bounded(dict):  # type: ignore[type-arg]  # Python 3.8 has no dict[…] here
    """The memo of a deep copy; too many objects end it."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) > MOST_OBJECTS:
            raise UnsupportedError("the model holds too many objects to be copied")
        dict.__setitem__(self, key, value)


def copy_without_data(torch: Any, module: Any, fake: Any) -> Any:
    """A deep copy of a module in which no tensor has memory and no user's hook is left.

    Raises:
        UnsupportedError: sharded or quantised parameters, or too large an object tree.
    """
    plain = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor))
    numpy = sys.modules.get("numpy")
    memo = _Bounded()
    for part in module.modules():
        held = (part._parameters, part._buffers, part.__dict__)
        for tensor in tensors_in(torch, held):
            if type(tensor) not in plain:
                raise UnsupportedError(f"a tensor of type {type(tensor).__name__}")
            if id(tensor) not in memo:
                described = describe(torch, [tensor.detach()])[1][0]
                made = empty_like(torch, described)
                if isinstance(tensor, torch.nn.Parameter):
                    made = torch.nn.Parameter(made, tensor.requires_grad)
                memo[id(tensor)] = made
        if numpy:
            arrays = (v for v in vars(part).values() if isinstance(v, numpy.ndarray))
            memo.update((id(a), a) for a in arrays)
    # Outside of the fake mode: a tensor that hides in an object is then copied as it is.
    with _without(fake):
        made = copy.deepcopy(module, memo)
    for part in made.modules():
        _drop_hooks(part)
    return made


@contextlib.contextmanager
def _without(fake: Any) -> Iterator[None]:
    fake.__exit__(None, None, None)
    try:
        yield
    finally:
        fake.__enter__()


def _drop_hooks(part: Any) -> None:
    """Remove the hooks of a copy, but not those by which PyTorch computes a weight."""
    for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
        hooks = getattr(part, name, {})
        for key, hook in list(hooks.items()):
            owner = getattr(hook, "__module__", None) or type(hook).__module__
            if not owner.startswith("torch.nn.utils"):
                del hooks[key]
