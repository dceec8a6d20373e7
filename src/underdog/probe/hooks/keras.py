"""The hook of Keras 3, on any of its backends.

Every way to train goes through a model's ``train_function``, which is given batches or an
iterator over them; what it takes is what a step used. Once it has run, the hook of the backend
(PyTorch, JAX) no longer counts steps or evaluations: Keras knows better.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from typing import Any

from ..batches import count_samples

WATCHES = "keras"
LOOKAHEAD = 2  # calls that may be under way where a backend returns before the work is done


def attach(module: Any, recorder: Any) -> None:
    """Watch a Keras that was just imported; one before version 3 is left alone.

    Args:
        module: ``keras``.
        recorder: where the steps go.
    """
    if not hasattr(getattr(module, "Model", None), "make_train_function"):
        return
    watch = TrainWatch(module, recorder)
    model = module.Model
    for name, kind in (
        ("evaluate", "evaluation"),
        ("predict", "evaluation"),
        ("save", "checkpoint"),
        ("save_weights", "checkpoint"),
    ):
        setattr(model, name, _pausing(getattr(model, name), watch, kind))
    model.fit = _finishing(model.fit, watch)
    model.make_train_function = _making(model.make_train_function, watch)
    iterator = _epoch_iterator()
    if iterator is not None:
        iterator.__next__ = _timed(iterator.__next__, watch)
        iterator._enumerate_iterator = _enumerated(iterator._enumerate_iterator, watch)
    recorder.before_flush(lambda last: watch.drain(0) if last else None)


def _epoch_iterator() -> Any:
    try:
        from keras.src.trainers.epoch_iterator import EpochIterator
    except ImportError:  # moved; the batches are then still counted, their time is not
        return None
    return EpochIterator


def _pausing(method: Any, watch: TrainWatch, kind: str) -> Any:
    @functools.wraps(method)
    def paused(*args: Any, **kwargs: Any) -> Any:
        return watch.paused(kind, method, args, kwargs)

    return paused


def _finishing(fit: Any, watch: TrainWatch) -> Any:
    @functools.wraps(fit)
    def finishing(*args: Any, **kwargs: Any) -> Any:
        try:
            return fit(*args, **kwargs)
        finally:
            watch.drain(0)

    return finishing


def _making(make: Any, watch: TrainWatch) -> Any:
    @functools.wraps(make)
    def maker(model: Any, *args: Any, **kwargs: Any) -> Any:
        result = make(model, *args, **kwargs)
        function = model.train_function
        if function is not None and not hasattr(function, "_underdog"):
            model.train_function = watch.around(function)
        return result

    return maker


def _timed(advance: Any, watch: TrainWatch) -> Any:
    @functools.wraps(advance)
    def timed(iterator: Any) -> Any:
        start = time.perf_counter()
        try:
            return advance(iterator)
        finally:
            watch.waited(time.perf_counter() - start)

    return timed


def _enumerated(enumerate_batches: Any, watch: TrainWatch) -> Any:
    @functools.wraps(enumerate_batches)
    def enumerated(iterator: Any) -> Any:
        for begin, end, batches in enumerate_batches(iterator):
            watch.position = (iterator, begin, end)
            yield begin, end, batches
            watch.drain(LOOKAHEAD)  # the callbacks have run, and may have waited for the outputs

    return enumerated


class Batches:
    """Stands in for an iterator over batches and counts the samples that are taken."""

    def __init__(self, iterator: Any, watch: TrainWatch) -> None:
        self._iterator, self._watch = iterator, watch
        self.taken: list[Any] = []

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Any:
        start = time.perf_counter()
        batch = next(self._iterator)
        self._watch.waited(time.perf_counter() - start)
        self.taken.append(count_samples(batch))
        return batch


class TrainWatch:
    """Turns calls of train functions into steps, once for all models of a process."""

    def __init__(self, keras: Any, recorder: Any) -> None:
        self.keras, self.recorder = keras, recorder
        self.position: Any = None  # (epoch iterator, first and last step) where training stands
        self._leads = False
        self._depth = 0
        self._data = 0.0
        self._last = 0.0
        self._pending: deque[Any] = deque()

    def around(self, function: Any) -> Any:
        """The train function, watched."""

        @functools.wraps(function)
        def train_function(*args: Any) -> Any:
            return self._train(function, args)

        train_function._underdog = True  # type: ignore[attr-defined]
        return train_function

    def waited(self, seconds: float) -> None:
        """The training loop waited for data; so may a validation, which is no step."""
        if not self._depth:
            self._data += seconds

    def paused(self, kind: str, method: Any, args: Any, kwargs: Any) -> Any:
        """Call what is not training; inside of training that is a pause."""
        if not self._leads or self._depth:
            return method(*args, **kwargs)
        self.drain(0)
        start, self._depth, kept = time.perf_counter(), 1, self.position
        try:
            return method(*args, **kwargs)
        finally:
            self._depth, self.position = 0, kept
            self._pause(kind, start, time.perf_counter())

    def _lead(self, start: float) -> None:
        """From now on steps and evaluations come from here alone."""
        recorder = self.recorder
        recorder.process(
            "keras", str(self.keras.__version__), backend=str(self.keras.backend.backend())
        )
        self._step, self._pause, other = recorder.step, recorder.pause, recorder.pause
        recorder.begin(start)
        self._last = start

        def pause(kind: str, start: float, end: float) -> None:
            if kind not in ("evaluation", "checkpoint"):
                other(kind, start, end)

        tell = recorder.note

        def note(code: str, message: str, remedy: str) -> None:
            if not code.startswith("samples_"):
                tell(code, message, remedy)

        recorder.pause, recorder.note = pause, note
        recorder.step = recorder.restart = lambda *_args, **_kwargs: None
        self._leads = True

    def _train(self, function: Any, args: Any) -> Any:
        start = time.perf_counter()
        if not self._leads:
            self._lead(start)
        self.drain(LOOKAHEAD)
        *state, batches = args
        counted = None
        if isinstance(batches, list):
            samples = [count_samples(batch) for batch in batches]
        elif hasattr(batches, "element_spec"):  # TensorFlow takes them inside of its graph
            samples = self._expected()
        else:
            counted = batches = Batches(batches, self)
        result = function(*state, batches)
        if counted is not None:
            samples = counted.taken
        data, self._data = self._data, 0.0
        self._pending.append((_mark(result), samples, data))
        self.drain(LOOKAHEAD)
        return result

    def _expected(self) -> list[Any]:
        """Samples of the steps of one call, as the source of the data tells them."""
        if self.position is None:
            return [None]
        iterator, begin, end = self.position
        adapter, batches = iterator.data_adapter, iterator.num_batches
        steps = range(begin, end + 1 if batches is None else min(end + 1, batches))
        last = batches - 1 if batches and adapter.has_partial_batch else None
        return [adapter.partial_batch_size if s == last else adapter.batch_size for s in steps]

    def drain(self, most: int) -> None:
        """Record what is done, and wait for all but the last ``most`` calls."""
        while self._pending:
            mark, samples, data = self._pending[0]
            if mark is not None and not mark.is_deleted() and not mark.is_ready():
                if len(self._pending) <= most:
                    return
                mark.block_until_ready()
            self._pending.popleft()
            self._record(samples, data, time.perf_counter())

    def _record(self, samples: list[Any], data: float, end: float) -> None:
        start, count = self._last, len(samples)
        for i, number in enumerate(samples, 1):
            phases = (data / count, 0.0, 0.0, 0.0, 0.0, 0.0)
            self._step(start + (end - start) * i / count, number, phases)
        if count:
            self._last = end


def _mark(result: Any) -> Any:
    """The smallest array of JAX in a result: a metric; None where there is none."""
    found, stack = [], [result]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        elif hasattr(item, "is_ready") and hasattr(item, "is_deleted"):
            found.append(item)
    return min(found, key=lambda a: a.size, default=None)
