"""Loops that differ in where their batches come from. Usage: batches.py KIND"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from collections import UserDict, namedtuple
from dataclasses import dataclass

import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
from truth import Truth
from work import WIDTH, Net, loader, loss_of, sgd


def train(truth, batches, unpack, samples=lambda batch, x: len(x), stop=None) -> None:  # type: ignore[no-untyped-def]
    model = Net()
    optimizer = sgd(model)
    for index, batch in enumerate(batches):
        if index == stop:
            break
        x, y = unpack(batch)
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        truth.step(samples(batch, x))


class Rows(Dataset):
    """Samples of several shapes, as a detector's."""

    def __init__(self, samples: int = 205) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.randn(3, 4 + index % 3, WIDTH)


class Stream(IterableDataset):
    """``ready``: whole batches, the last one short."""

    def __init__(self, samples: int = 205, ready: bool = False) -> None:
        self.samples, self.ready = samples, ready

    def __iter__(self):  # type: ignore[no-untyped-def]
        info = torch.utils.data.get_worker_info()
        share = (info.id, info.num_workers) if info else (0, 1)
        if self.ready:
            for first in range(0, self.samples, 10):
                size = min(10, self.samples - first)
                yield torch.randn(size, WIDTH), torch.randn(size, 1)
        else:
            for _ in range(share[0], self.samples, share[1]):
                yield torch.randn(WIDTH), torch.randn(1)


def pair(batch):  # type: ignore[no-untyped-def]
    return batch


def mean_of(images):  # type: ignore[no-untyped-def]
    return torch.stack([image.mean((0, 1)) for image in images])


def as_dict(rows):  # type: ignore[no-untyped-def]
    return {"step": torch.tensor(3), "x": torch.stack([r[0] for r in rows]), "rows": rows}


def as_user_dict(rows):  # type: ignore[no-untyped-def]
    return UserDict(x=torch.stack([r[0] for r in rows]), y=torch.stack([r[1] for r in rows]))


Named = namedtuple("Named", "x y")


def as_named(rows):  # type: ignore[no-untyped-def]
    return Named(torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows]))


@dataclass
class Record:
    name: str
    x: torch.Tensor
    y: torch.Tensor


def as_dataclass(rows):  # type: ignore[no-untyped-def]
    named = as_named(rows)
    return Record("a batch", named.x, named.y)


def as_packed(rows):  # type: ignore[no-untyped-def]
    sequences = [r[0].expand(1 + i % 3, WIDTH) for i, r in enumerate(rows)]
    return pack_sequence(sequences, enforce_sorted=False)


def without_some(rows):  # type: ignore[no-untyped-def]
    return as_named(rows[: max(1, len(rows) - 2)])


def from_x(batch):  # type: ignore[no-untyped-def]
    return batch["x"], torch.zeros(len(batch["x"]), 1)


KINDS = {
    "tensor": lambda t: train(
        t, DataLoader(torch.randn(205, WIDTH), 10), lambda b: (b, torch.zeros(len(b), 1))
    ),
    "dict": lambda t: train(t, loader(collate_fn=as_dict), from_x),
    "user_dict": lambda t: train(t, loader(collate_fn=as_user_dict), lambda b: (b["x"], b["y"])),
    "namedtuple": lambda t: train(t, loader(collate_fn=as_named), pair),
    "dataclass": lambda t: train(t, loader(collate_fn=as_dataclass), lambda b: (b.x, b.y)),
    "packed": lambda t: train(
        t,
        loader(collate_fn=as_packed),
        lambda b: (b.data, torch.zeros(len(b.data), 1)),
        lambda b, x: int(b.batch_sizes[0]),
    ),
    "filtered": lambda t: train(t, loader(collate_fn=without_some), pair),
    "images": lambda t: train(
        t,
        DataLoader(Rows(), 8, collate_fn=list),
        lambda b: (mean_of(b), torch.zeros(len(b), 1)),
    ),
    "detection": lambda t: train(
        t,
        DataLoader(Rows(), 8, collate_fn=lambda rows: (list(rows), [{} for _ in rows])),
        lambda b: (mean_of(b[0]), torch.zeros(len(b[0]), 1)),
    ),
    "batch_size_two": lambda t: train(t, loader(41, 2), pair),
    "workers": lambda t: train(t, loader(num_workers=2), pair),
    "persistent_workers": lambda t: [
        train(t, batches, pair)
        for batches in [loader(num_workers=2, persistent_workers=True)]
        for _ in range(2)
    ],
    "spawned_workers": lambda t: train(
        t, loader(num_workers=1, multiprocessing_context="spawn"), pair
    ),
    "stream": lambda t: train(t, DataLoader(Stream(), 10), pair),
    "stream_workers": lambda t: train(t, DataLoader(Stream(), 10, num_workers=2), pair),
    "ready": lambda t: train(t, DataLoader(Stream(ready=True), None), pair),
    "early_stop": lambda t: train(t, loader(), pair, stop=15),
}


def nested(truth: Truth) -> None:
    class Outer(IterableDataset):
        def __iter__(self):  # type: ignore[no-untyped-def]
            for x, y in loader(batch=5):
                yield torch.cat([x, x]), torch.cat([y, y])

    train(truth, DataLoader(Outer(), None), pair)


def zipped(truth: Truth) -> None:
    model = Net()
    optimizer = sgd(model)
    for (x, y), (u, _) in zip(loader(205, 10), loader(410, 20), strict=True):
        optimizer.zero_grad()
        (loss_of(model, x, y) + model(u).mean()).backward()
        optimizer.step()
        truth.step(len(x))


def joined(truth: Truth) -> None:
    """Two batches of a loader make one."""
    source = iter(loader(200, 10))
    train(
        truth,
        (
            (torch.cat([a[0], b[0]]), torch.cat([a[1], b[1]]))
            for a, b in zip(source, source, strict=True)
        ),
        pair,
    )


def look_ahead(truth: Truth) -> None:
    def ahead():  # type: ignore[no-untyped-def]
        source = iter(loader())
        now = next(source)
        for following in source:
            yield now
            now = following
        yield now

    train(truth, ahead(), lambda b: (b[0] * 2, b[1]))


def look_ahead_stopped(truth: Truth) -> None:
    def ahead():  # type: ignore[no-untyped-def]
        source = iter(loader())
        now = next(source)
        for following in source:
            yield now
            now = following

    train(truth, ahead(), lambda b: (b[0] * 2, b[1]), stop=15)


def thread_ahead(truth: Truth) -> None:
    train(truth, _threaded(loader()), pair)


def thread_ahead_stopped(truth: Truth) -> None:
    train(truth, _threaded(loader()), pair, stop=15)


def thread_ahead_changed(truth: Truth) -> None:
    train(truth, _threaded(loader()), lambda b: (b[0] * 2, b[1]), stop=15)


def _threaded(batches):  # type: ignore[no-untyped-def]
    """A thread reads ahead; it ends with its reader.

    A daemon thread that is inside PyTorch while Python ends aborts the process, with the probe or
    without (Python takes its thread down through C++ that may not be unwound).
    """
    ready: queue.Queue = queue.Queue(maxsize=4)
    stopped = threading.Event()

    def read() -> None:
        for batch in batches:
            ready.put(batch)
            if stopped.is_set():
                return
        ready.put(None)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        while (batch := ready.get()) is not None:
            yield batch
    finally:
        stopped.set()
        while thread.is_alive():  # makes room for the batch that it may hold
            with contextlib.suppress(queue.Empty):
                ready.get(timeout=0.01)


def one_batch(truth: Truth) -> None:
    """The same batch again and again, to see whether a model can learn it."""
    batch = next(iter(loader()))
    train(truth, [batch] * 20, pair)


def sample_first(truth: Truth) -> None:
    """A batch of another loader is kept for pictures, one of the same for its shape."""
    batches = loader()
    fixed, _ = next(iter(loader(64, 32)))
    next(iter(batches))
    train(truth, batches, pair)
    assert len(fixed) == 32


def get_batch(truth: Truth) -> None:
    train(truth, ((torch.randn(12, WIDTH), torch.randn(12, 1)) for _ in range(20)), pair)


def keyword_input(truth: Truth) -> None:
    model = Net()
    optimizer = sgd(model)
    for _ in range(20):
        x = torch.randn(12, WIDTH)
        optimizer.zero_grad()
        model(x=x).mean().backward()
        optimizer.step()
        truth.step(len(x))


def time_first(truth: Truth) -> None:
    """The batch is the second dimension: only the script knows."""
    model = torch.nn.LSTM(WIDTH, 16)
    optimizer = sgd(model)
    for _ in range(20):
        optimizer.zero_grad()
        model(torch.randn(35, 20, WIDTH))[0].mean().backward()
        optimizer.step()
        truth.step(20)


def full_batch(truth: Truth) -> None:
    batches = loader(64, 64)
    model = Net()
    optimizer = sgd(model)
    for _ in range(20):
        for x, y in batches:
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
            truth.step(len(x))


def tracked(truth: Truth) -> None:
    import underdog

    data = TensorDataset(torch.randn(205, WIDTH), torch.randn(205, 1))
    rows = [data[first : first + 10] for first in range(0, 205, 10)]
    model = Net(sleep=0.004)
    optimizer = sgd(model)
    for x, y in underdog.track(rows):
        optimizer.zero_grad()
        loss_of(model, x.repeat(2, 1)[: len(x)], y).backward()
        optimizer.step()
        truth.step(len(x))


def tracked_loader(truth: Truth) -> None:
    import underdog

    train(truth, underdog.track(loader()), pair)


if __name__ == "__main__":
    truth = Truth()
    kind = sys.argv[1]
    (KINDS[kind] if kind in KINDS else globals()[kind])(truth)
    truth.tell()
