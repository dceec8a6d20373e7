"""How many samples a batch holds, whatever its structure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DEPTH = 4  # containers within containers that are looked into


def count_samples(batch: Any, expected: int | None = None) -> int | None:
    """The number of samples of a batch, None where its structure does not tell.

    Args:
        batch: an array, or a mapping, sequence, dataclass or object of arrays.
        expected: what the sampler asked for. It is believed where the batch has some dimension
            or length that agrees, for a list of three images may also be an image of three
            channels.
    """
    if expected is not None and type(batch) in (list, tuple) and batch:
        shape = _shape(batch[0])
        if shape and shape[0] == expected:
            return expected  # nearly always
    leading = leading_dimension(batch)
    if leading is not None and leading == expected:
        return leading
    if expected is not None and _has_length(batch, expected):
        return expected
    columns = _columns(batch)
    if columns is not None:
        return columns
    if leading is not None:
        return leading
    if expected is not None:
        return expected
    return len(batch) if isinstance(batch, (list, tuple)) and batch else None


def leading_dimension(value: Any) -> int | None:
    """The leading dimension of the first array in a structure that has one."""
    first = value[0] if type(value) in (list, tuple) and value else value
    shape = _shape(first)
    if isinstance(shape, tuple) and shape and type(shape[0]) is int:
        return shape[0]  # an array, or a pair of them: nearly always
    for array in arrays(value):
        return _length(array)
    return None


def arrays(value: Any, depth: int = DEPTH) -> Iterator[Any]:
    """The arrays of a structure (what has a shape of one dimension or more), in order."""
    if _is_array(value):
        if _length(value) is not None:
            yield value
    elif depth:
        for part in _parts(value):
            yield from arrays(part, depth - 1)


def _is_array(value: Any) -> bool:
    return _shape(value) is not None or _packed(value) or hasattr(value, "num_graphs")


def _shape(value: Any) -> Any:
    try:
        return getattr(value, "shape", None)
    except RuntimeError:  # a nested tensor has none, but a first dimension
        return ()


def _packed(value: Any) -> bool:
    """A PackedSequence of PyTorch: its batch sizes fall with time."""
    return hasattr(value, "batch_sizes") and hasattr(value, "sorted_indices")


def _length(array: Any) -> int | None:
    try:
        if _packed(array):
            return int(array.batch_sizes[0])
        if hasattr(array, "num_graphs"):  # graphs of a batch lie in one array of nodes
            return int(array.num_graphs)
        if getattr(array, "is_nested", False):
            return int(array.size(0))
        shape = array.shape
        return int(shape[0]) if len(shape) else None
    except Exception:  # a symbolic or lazy array has no number to tell
        return None


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, (str, bytes)):
        return iter(())
    if isinstance(value, (list, tuple)):
        return iter(value)
    if hasattr(value, "values") and hasattr(value, "keys"):
        return iter(value.values())
    if hasattr(value, "__dict__"):
        return iter(vars(value).values())
    if hasattr(value, "__slots__"):
        return iter([getattr(value, name, None) for name in value.__slots__])
    return iter(())


def _has_length(batch: Any, expected: int) -> bool:
    if isinstance(batch, (list, tuple)):
        if len(batch) == expected:
            return True
        if any(isinstance(part, (list, tuple)) and len(part) == expected for part in batch):
            return True
    return any(_length(array) == expected for array in arrays(batch))


def _columns(batch: Any) -> int | None:
    """Samples of ``(inputs, targets)`` where each is a sequence, as a detector's collate gives."""
    if not isinstance(batch, (list, tuple)) or not batch:
        return None
    if all(isinstance(part, (list, tuple)) for part in batch):
        lengths = {len(part) for part in batch}
        return lengths.pop() if len(lengths) == 1 else None
    return None
