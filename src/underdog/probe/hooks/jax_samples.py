"""How many samples one call of a training function uses, from its inputs and outputs.

State goes in and comes out again with the same shapes; a batch only goes in. So an argument whose
arrays all come back is state, and of the others the one whose arrays agree in their leading
dimension is the batch.
"""

from __future__ import annotations

from collections import Counter
from typing import Any


def array_leaves(jax: Any, tree: Any) -> list[Any]:
    """The leaves of a tree that have a shape and a number format, in order."""
    leaves = jax.tree_util.tree_leaves(tree)
    return [a for a in leaves if hasattr(a, "shape") and hasattr(a, "dtype")]


class BatchFinder:
    """Remembers where the batch of one function is, so that a call costs little.

    Args:
        jax: the module.
        mapped: the leading dimension is that of the devices (``jax.pmap``).
    """

    def __init__(self, jax: Any, mapped: bool) -> None:
        self._jax, self._mapped = jax, mapped
        self._place: Any = None
        self.unknown = False
        self.state_bytes = 0
        self.loop_length: Any = None  # of a loop inside that takes gradients

    def samples(self, args: Any, kwargs: Any, out: Any) -> Any:
        """Samples of this process in one call, None where it is not clear."""
        if self._place is None and not self.unknown:
            self._place = self._find(args, kwargs, out)
            self.unknown = self._place is None
        if self._place is None:
            return None
        key, index = self._place
        try:
            part = kwargs[key] if isinstance(key, str) else args[key]
            return self._length(array_leaves(self._jax, part)[index])
        except (LookupError, TypeError):
            return None

    def _find(self, args: Any, kwargs: Any, out: Any) -> Any:
        back = Counter(map(_kind, array_leaves(self._jax, out)))
        candidates = []
        for key, part in [*enumerate(args), *kwargs.items()]:
            leaves = array_leaves(self._jax, part)
            fresh = _not_back(leaves, back)
            self.state_bytes += sum(_bytes(a) for a in leaves) - sum(_bytes(a) for _, a in fresh)
            fresh = [(i, a) for i, a in fresh if len(a.shape) and not _random_key(a)]
            lengths = {self._length(a) for _, a in fresh}
            if len(lengths) == 1:
                candidates.append((lengths.pop(), key, fresh[0][0], fresh[0][1]))
        if len({length for length, *_ in candidates}) > 1:
            # data comes from the host; constants of a model have been moved to a device
            host = [c for c in candidates if not isinstance(c[3], self._jax.Array)]
            candidates = host
        if len({length for length, *_ in candidates}) != 1:
            return None
        return candidates[0][1:3]

    def _length(self, array: Any) -> int:
        length = int(array.shape[0])
        if len(array.shape) > 1 and (self._mapped or length == self.loop_length):
            return length * int(array.shape[1])
        if not getattr(array, "is_fully_addressable", True):
            return length // int(self._jax.process_count())
        return length


def _kind(array: Any) -> Any:
    return tuple(array.shape), str(array.dtype)


def _bytes(array: Any) -> int:
    return int(getattr(array, "nbytes", 0))


def _random_key(array: Any) -> bool:
    name = str(array.dtype)
    return name.startswith("key<") or (name == "uint32" and tuple(array.shape) == (2,))


def _not_back(leaves: Any, back: Any) -> list[Any]:
    """``(index, array)`` of the arrays that have no counterpart left in the outputs."""
    fresh = []
    for index, array in enumerate(leaves):
        kind = _kind(array)
        if back[kind] > 0:
            back[kind] -= 1
        else:
            fresh.append((index, array))
    return fresh
