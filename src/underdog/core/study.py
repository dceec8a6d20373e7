"""A study: one TOML file that says what is searched, checked whole. docs/reference/study.md.

Pure: the text goes in, a ``Study`` or every problem of it comes out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from underdog.core.columns import BY_NAME
from underdog.core.expression import Expression, parse
from underdog.core.problems import LARGEST, SMALLEST, shown
from underdog.core.utility import Utility, parse_utility
from underdog.errors import UnderdogError, UsageError, did_you_mean
from underdog.units import parse_duration

PURCHASES = ("on-demand", "spot", "reserved")
DIRECTIONS = ("higher", "lower")
MAX_TRIALS = 20
TEST_SECONDS = 120.0
PRECISION = 0.02
TIMEOUT = 120.0
MOST_PARALLEL = 64
_MANY = 10**9

# of these a study may change and still be the same one: a rerun goes on under the new limits
_LIMITS = ("budget", "max_trials", "parallel", "deadline")


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """What is searched; ``docs/reference/study.md`` says what each part does.

    Dollars are USD, times are seconds, ``tolerance`` and ``precision`` shares. ``job_deadline`` and
    ``job_budget`` are of the whole job of ``samples``, the other two of the search itself.
    """

    workload: str | None = None
    command: tuple[str, ...] = ()
    pattern: str | None = None
    samples_per_step: float | None = None
    knobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    offers: str | None = None
    where: str | None = None
    purchase: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    limit: int | None = None
    by: str = "samples_per_dollar"
    better: Literal["higher", "lower"] | None = None
    tolerance: float = 0.0
    samples: float | None = None
    job_deadline: float | None = None
    job_budget: float | None = None
    budget: float | None = None
    max_trials: int = MAX_TRIALS
    parallel: int = 1
    deadline: float | None = None
    seed: int = 0
    runner: str = "local"
    trials: str | None = None
    test: float = TEST_SECONDS
    precision: float = PRECISION
    timeout: float = TIMEOUT
    price: float | None = None

    def utility(self) -> Utility:
        """The utility, read.

        Raises:
            UsageError: it cannot be.
        """
        return parse_utility(
            self.by,
            direction=self.better,
            tolerance=self.tolerance,
            has_samples=self.samples is not None,
        )

    def condition(self) -> Expression | None:
        """The condition on offers, read.

        Raises:
            ExpressionError: it cannot be.
        """
        return None if self.where is None else parse(self.where, BY_NAME)

    def id(self, contents: Mapping[str, str]) -> str:
        """The name of what is asked, the same whenever the same is asked.

        The limits of the search are no part of it, so that a study goes on under a larger budget.

        Args:
            contents: hashes of the files that it names, which stand for their paths.
        """
        said = dataclasses.asdict(self)
        for name in (*_LIMITS, "offers", "trials"):
            del said[name]
        if not self.needs:  # a study that asks for none has the name that it always had
            del said["needs"]
        text = json.dumps({**said, **contents}, sort_keys=True)
        return "study-" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


Read = Callable[[Any], Any]  # a value of the right kind, or ValueError with what is wrong


def read_study(
    text: str, given: Mapping[str, Any], runners: Collection[str]
) -> tuple[Study, list[str]]:
    """The study of a TOML text, and all its problems; it is of use only where there are none.

    Args:
        text: the file; empty where all is given otherwise.
        given: fields of ``Study`` that stand over those of the text, such as flags.
        runners: the names of those that there are.
    """
    problems: list[str] = []
    fields: dict[str, Any] = {}
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return Study(), [f"It is not TOML: {error}."]  # what it lacks nobody can tell
    for name, value in tables.items():
        _read_table(name, value, fields, problems)
    for name, value in given.items():
        try:
            fields[name] = _BY_FIELD[name](value)
        except ValueError as error:
            problems.append(f"--{name.replace('_', '-')}: {error}")
    study = Study(**fields)
    return study, problems + _whole(study, runners)


def _read_table(name: str, table: Any, fields: dict[str, Any], problems: list[str]) -> None:
    if name not in TABLES:
        problems.append(f"There is no table [{name}]. {did_you_mean(name, TABLES)}")
    elif not isinstance(table, dict):
        problems.append(f"'{name}' is a table: write [{name}] on a line of its own.")
    elif name == "knobs":
        fields["knobs"] = {}
        for knob, values in table.items():
            try:
                fields["knobs"][knob] = _knob(knob, values)
            except ValueError as error:
                problems.append(f"[knobs] {knob}: {error}")
    else:
        known = TABLES[name]
        for key, value in table.items():
            if key not in known:
                problems.append(f"[{name}] has no '{key}'. {did_you_mean(key, known)}")
                continue
            target, read = known[key]
            try:
                fields[target] = read(value)
            except ValueError as error:
                problems.append(f"[{name}] {key}: {error}")


def _whole(study: Study, runners: Collection[str]) -> list[str]:
    """What the parts are not to each other."""
    problems = []
    if study.runner not in runners:
        hint = did_you_mean(study.runner, runners)
        problems.append(f"There is no runner '{shown(study.runner)[1:-1]}'. {hint}")
    elif study.runner == "replay":
        if study.trials is None:
            problems.append("A replay needs recorded trials: [runner] trials, or --trials FILE.")
    elif study.trials is not None:
        problems.append("Recorded trials are for the replay: [runner] name, or --runner replay.")
    elif not study.command:
        problems.append(f"The runner '{study.runner}' needs the command [workload] command.")
    if study.samples is None:
        problems += [
            f"[constraints] {name} needs [utility] samples, of the whole job."
            for name in ("deadline", "budget")
            if getattr(study, f"job_{name}") is not None
        ]
    for read in (study.utility, study.condition):
        try:
            read()
        except UnderdogError as error:
            problems.append(str(error).replace("\n", " "))
    return problems


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError(f"{shown(value)} is not a text.")
    return value


def _among(names: Collection[str]) -> Read:
    def read(value: Any) -> str:
        if value not in names:
            raise ValueError(f"there is no {shown(value)}. {did_you_mean(str(value), names)}")
        return str(value)

    return read


def _some(names: Collection[str]) -> Read:
    def read(value: Any) -> tuple[str, ...]:
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple) or not listed:
            raise ValueError(f"{shown(value)} is not a list such as {sorted(names)[:2]}.")
        return tuple(_among(names)(one) for one in listed)

    return read


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or not all(map(_is_word, value)):
        raise ValueError(f'{shown(value)} is not a list of words such as ["python", "train.py"].')
    return tuple(str(word) for word in value)


def _names(value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not listed:
        raise ValueError(f'{shown(value)} is not a list of names such as ["fp64"].')
    return tuple(dict.fromkeys(map(_text, listed)))


def _is_word(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _knob(name: str, values: Any) -> tuple[str, ...]:
    if not name.isidentifier():
        raise ValueError("its name must be letters, digits and '_', to stand in the command.")
    if not isinstance(values, list) or not values:
        raise ValueError(f"{shown(values)} is not a list of values such as [8, 16, 32].")
    if not all(isinstance(value, str | int | float) for value in values):
        raise ValueError(f"{shown(values)} holds what is neither a number nor a text.")
    texts = [str(v).lower() if isinstance(v, bool) else str(v) for v in values]
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise ValueError(f"{shown(values)} holds a number that is not finite.")
    return tuple(dict.fromkeys(texts))


def _positive(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{shown(value)} is not a number.")
    if not SMALLEST < value < LARGEST:
        raise ValueError(f"{shown(value)} is not a positive finite number.")
    return float(value)


def _count(most: int = _MANY, least: int = 1) -> Read:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{shown(value)} is not a whole number from {least} to {most:,}.")
        return value

    return read


def _duration(value: Any) -> float:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except UsageError as error:
            raise ValueError(str(error).replace("\n", " ")) from None
    return _positive(value)


def _share(value: Any) -> float:
    text = str(value).strip() if isinstance(value, str) else ""
    try:
        number = float(text[:-1]) / 100 if text.endswith("%") else _positive(value)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise ValueError(f'{shown(value)} is not a share such as "10%" or 0.1.')
    return number


# table -> key -> (field of Study, how it is read)
TABLES: dict[str, dict[str, tuple[str, Read]]] = {
    "workload": {
        "name": ("workload", _text),
        "command": ("command", _words),
        "pattern": ("pattern", _text),
        "samples_per_step": ("samples_per_step", _positive),
    },
    "knobs": {},
    "candidates": {
        "offers": ("offers", _text),
        "where": ("where", _text),
        "purchase": ("purchase", _some(PURCHASES)),
        "needs": ("needs", _names),
        "limit": ("limit", _count()),
    },
    "utility": {
        "by": ("by", _text),
        "better": ("better", _among(DIRECTIONS)),
        "tolerance": ("tolerance", _share),
        "samples": ("samples", _positive),
    },
    "constraints": {
        "deadline": ("job_deadline", _duration),
        "budget": ("job_budget", _positive),
    },
    "search": {
        "budget": ("budget", _positive),
        "max_trials": ("max_trials", _count()),
        "parallel": ("parallel", _count(MOST_PARALLEL)),
        "deadline": ("deadline", _duration),
        "seed": ("seed", _count(2**63 - 1, least=0)),
    },
    "runner": {
        "name": ("runner", _text),
        "trials": ("trials", _text),
        "test": ("test", _duration),
        "precision": ("precision", _share),
        "timeout": ("timeout", _duration),
        "price": ("price", _positive),
    },
}
_BY_FIELD: dict[str, Read] = {
    target: read for table in TABLES.values() for target, read in table.values()
}
