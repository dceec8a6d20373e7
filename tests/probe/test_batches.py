"""How many samples a batch holds."""

from __future__ import annotations

from collections import UserDict
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.probe.batches import count_samples, leading_dimension


def array(*shape: int) -> np.ndarray:
    return np.zeros(shape)


@dataclass
class Pair:
    name: str
    x: np.ndarray


@pytest.mark.parametrize(
    ("batch", "expected", "samples"),
    [
        (array(7, 3), None, 7),
        ((array(7, 3), array(7)), None, 7),
        ({"step": array(), "x": array(7, 3)}, None, 7),
        (UserDict(x=array(7, 3)), None, 7),
        (Pair("train", array(7, 3)), None, 7),
        ([[array(7, 3), array(7, 3)], array(7)], 7, 7),  # two views of each sample
        ([array(3, 5, 5)] * 7, 7, 7),  # a list of images
        (([array(3, 5, 5)] * 7, [{}] * 7), None, 7),  # images and their boxes
        (([array(3, 5, 5)] * 6, [{}] * 6), 7, 6),  # the collate left one out
        ((array(6, 3), array(6)), 7, 6),
        ([1, 2, 3], None, 3),
        (["one", "two"], None, 2),
        (3, None, None),
        (3, 7, 7),
        (None, None, None),
        ([], None, None),
    ],
)
def test_count(batch: object, expected: int | None, samples: int | None) -> None:
    assert count_samples(batch, expected) == samples


@given(st.integers(1, 50), st.recursive(st.none(), lambda s: st.lists(s, max_size=2), max_leaves=4))
def test_the_first_array_of_any_structure(samples: int, before: object) -> None:
    assert leading_dimension([before, {"x": array(samples, 2)}]) == samples


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_without_a_plain_shape() -> None:
    torch = pytest.importorskip("torch")
    rows = [torch.zeros(2, 3), torch.zeros(4, 3)]
    assert count_samples(torch.nested.nested_tensor(rows)) == 2
    assert count_samples(torch.nested.nested_tensor(rows, layout=torch.jagged)) == 2
    assert count_samples(torch.nn.utils.rnn.pack_sequence(rows, enforce_sorted=False)) == 2
    assert count_samples(torch.zeros(5, 3).to_sparse()) == 5
