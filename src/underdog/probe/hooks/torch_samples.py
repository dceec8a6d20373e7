"""Which fetched batches a step trained on.

A batch is pending from its fetch until the step that it belongs to ends. It is dropped without
being counted where no backward follows: its loader moved on after a forward without gradients,
or came to its end, or began anew.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from ..batches import arrays

MOST_PENDING = 4096


class Batch:
    """One fetched batch. ``pointers`` tell its tensors' memory, where they are kept."""

    __slots__ = ("iterator", "loader", "looked_at", "own", "pointers", "samples", "used")

    def __init__(self, loader: int, samples: float | None, iterator: Any = None) -> None:
        self.loader = loader
        self.samples = samples
        self.iterator = iterator  # a weak reference
        self.looked_at = False  # a forward without gradients followed
        self.used = False  # a backward followed
        self.own = False  # one followed before the next batch
        self.pointers: tuple[int, ...] = ()


class Taken(NamedTuple):
    """The samples of a step, and whether a loader told them (else a module's input did)."""

    samples: float | None
    from_loader: bool


class SampleLedger:
    """Follows fetches, forwards and backwards, and says at each step's end what it used."""

    def __init__(self) -> None:
        self.several_loaders = False
        self.input_of = ""  # the module and shape that samples were read from
        self.clear()

    def clear(self) -> None:
        """Nothing is pending."""
        self.pending: list[Batch] = []
        self.ahead: deque[Batch] = deque(maxlen=MOST_PENDING)  # fetched by other threads
        self._matched: list[Batch] = []
        self._trained_pass: dict[int, bool] = {}  # loader: its present pass was trained on
        self._lead: int | None = None
        self._backwards = 0
        self._input: float | None = None  # of the first forward since the last backward
        self._inputs: float | None = None  # their sum over the step's backwards
        self._together = False  # the step's input joins all that is pending
        self._growth = 0  # steps in a row that left more pending than the one before
        self._greedy = False  # each backward joins several batches
        self._left = 0

    # Events

    def fetched(self, batch: Batch, new_pass: bool) -> bool:
        """A batch came from its loader. True where an evaluation batch was dropped for it."""
        dropped = False
        if self.pending:
            dropped = any(b.looked_at and not b.used for b in self.pending)
            self.pending = [
                b
                for b in self.pending[-MOST_PENDING:]
                if b.used or not (b.looked_at or (new_pass and b.loader == batch.loader))
            ]
        if new_pass:
            self._trained_pass[batch.loader] = False
        self.pending.append(batch)
        return dropped

    def exhausted(self, loader: int) -> bool:
        """A loader came to its end. True where nothing of this pass was trained on."""
        if self._trained_pass.get(loader, True):
            return False
        mine = [b for b in self.pending if b.loader == loader]
        if any(b.used for b in mine):
            return False
        self.pending = [b for b in self.pending if b.loader != loader]
        return bool(mine)

    def looked_at(self) -> None:
        """A forward without gradients: what is pending may be for evaluation."""
        for batch in self.pending:
            batch.looked_at = True

    def forward(self, module: str, size: float | None, found: tuple[int, ...]) -> None:
        """An outermost module was called with gradients on.

        Args:
            module: the name of its class.
            size: the leading dimension of its input, None where it was not asked.
            found: pointers of its input's tensors, where batches are fetched ahead.
        """
        if found:
            self._match(found)
        if self._input is not None or size is None or len(self.pending) == 1:
            return
        self._input = size
        if len(self.pending) > 1:
            self._together = size == sum(b.samples or 0 for b in self.pending)
        elif not self.input_of:
            self.input_of = module

    def backward(self) -> None:
        """A backward begins: what is pending is trained on."""
        self._backwards += 1
        for batch in self.pending:
            batch.used = True
            batch.own = batch.own or batch is self.pending[-1]
        if not self.pending and self._input:
            self._inputs = (self._inputs or 0) + self._input
        self._input = None

    def take(self, several_optimizers: bool = False) -> Taken:
        """The samples of the step that ends now."""
        taken = self._from_loaders()
        if taken is None and (self._matched or (self.ahead and self._backwards)):
            taken = self._from_ahead(several_optimizers)
        if taken is None:
            taken = Taken(self._inputs, False)
        self._matched = []
        self._inputs = self._input = None
        self._backwards = 0
        self._together = False
        return taken

    # What a step used

    def _from_loaders(self) -> Taken | None:
        pending = self.pending
        if len(pending) == 1 and pending[0].used:  # nearly always
            self.pending = []
            self._lead, self._left, self._growth = pending[0].loader, 0, 0
            self._trained_pass[self._lead] = True
            return Taken(pending[0].samples, True)
        used = [b for b in pending if b.used]
        if not used:
            return None
        if len({b.loader for b in used}) > 1:
            used = self._of_lead(used)
        self._lead = used[-1].loader
        count = len(used) if self._together or self._greedy else max(self._backwards, 1)
        counted, left = used[:count], used[count:]
        self._growth = self._growth + 1 if len(left) > self._left else 0
        self._greedy = self._greedy or self._growth > 1  # a look-ahead would not grow
        self._left = len(left)
        self.pending = left + [b for b in self.pending if not b.used]
        self._trained_pass.update((b.loader, True) for b in counted)
        return Taken(_total(counted), True)

    def _of_lead(self, used: list[Batch]) -> list[Batch]:
        """Of several loaders that are read together one counts; one after another, all do."""
        if any(b.loader == self._lead for b in used):
            own = [b for b in used if b.own]
            if any(b.loader == self._lead for b in own):
                return own
            lead = self._lead
        else:
            # what was read once, for its shape or a picture, has no living iterator
            used = [b for b in used if b.iterator is None or b.iterator() is not None] or used
            lead = used[0].loader
        mine = [b for b in used if b.loader == lead]
        self.several_loaders = self.several_loaders or len(mine) < len(used)
        return mine

    def _match(self, found: tuple[int, ...]) -> None:
        for batch in list(self.ahead):
            if set(found).intersection(batch.pointers) and batch not in self._matched:
                self._matched.append(batch)
                return

    def _from_ahead(self, several_optimizers: bool) -> Taken:
        if self._matched:
            counted = self._matched
            while self.ahead and counted[-1] in self.ahead:
                self.ahead.popleft()  # up to the one that was used: what came before was not
        else:
            count = 1 if several_optimizers else max(self._backwards, 1)
            counted = [self.ahead.popleft() for _ in range(min(count, len(self.ahead)))]
        return Taken(_total(counted), True)


def _total(batches: list[Batch]) -> float | None:
    known = [b.samples for b in batches if b.samples is not None]
    return sum(known) if len(known) == len(batches) else None


def pointers(value: Any) -> tuple[int, ...]:
    """Where the tensors of a structure lie in memory."""
    found = []
    for tensor in arrays(value):
        try:
            found.append(int(tensor.data_ptr()))
        except Exception:  # no memory of its own: sparse, fake, packed
            continue
    return tuple(found)
