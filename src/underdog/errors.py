"""The one tree of exceptions. Each says what could not be done, what was expected, what to do.

=======================  =======================================================================
``UnderdogError``        base of all; the command line prints it as one message, exit status 2
``UsageError``           a flag, a name or a value that cannot be taken
``ExpressionError``      a ``--where`` or ``--by`` expression that cannot be read or computed
``CatalogError``         a snapshot or an offers file that cannot be read; names row and field
``HttpError``            a source of the catalog that gave no answer; has its HTTP status
``NotSetUpError``        a provider's package or its credentials are missing
``StoreError``           a store that cannot be opened, read or written
``TrialsError``          a file of trials that cannot be imported; names row and field
``MeasureError``         a run that could not be started or observed
``RunnerError``          an engine that cannot be reached or used, or a job of it that is lost
``RefusedError``         an engine gave no machine; has the provider's words and what they mean
``MissingPackageError``  an optional package that this needs is not installed
=======================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Iterable


class UnderdogError(Exception):
    """Base of all errors that underdog raises on purpose.

    Args:
        message: what could not be done, with the user's value in quotes.
        hint: one sentence or command that helps, or None.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(UnderdogError):
    """A flag, a name or a value that cannot be taken."""


class ExpressionError(UsageError):
    """An expression that cannot be read or computed."""


class CatalogError(UnderdogError):
    """A snapshot or an offers file that cannot be read; names row and field."""


class HttpError(CatalogError):
    """A source that gave no answer; ``status`` is that of HTTP, None where none came at all."""

    def __init__(self, message: str, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(message, hint)
        self.status = status


class NotSetUpError(CatalogError):
    """A provider cannot be asked from here: its package or its credentials are missing."""


class StoreError(UnderdogError):
    """A store that cannot be opened, read or written."""


class TrialsError(UnderdogError):
    """A file of trials that cannot be imported; names row and field."""


class MeasureError(UnderdogError):
    """A run that could not be started or observed."""


class RunnerError(UnderdogError):
    """An engine that cannot be reached or used, or a job of it that is lost."""


class RefusedError(RunnerError):
    """An engine gave no machine.

    Args:
        words: the provider's own words, whole.
        kind: what they mean, one of ``underdog.core.refusals.Kind``.
        hint: what to do next.
    """

    def __init__(self, words: str, kind: str, hint: str | None = None) -> None:
        super().__init__(words, hint)
        self.kind = kind


class MissingPackageError(UnderdogError):
    """An optional package is not installed."""

    def __init__(self, what: str, package: str, extra: str | None = None) -> None:
        target = f"'underdog[{extra}]'" if extra else package
        super().__init__(f"{what} needs the package '{package}'.", f"pip install {target}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is meant by a mistyped one, or None where none is close.

    The first one that has all its words is meant (``price``: ``price_per_hour``), else the closest.
    """
    import difflib  # on use: only a mistake needs it, and the command line loads this module

    by_lower = {name_.lower(): name_ for name_ in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.8)
    words = set(name.lower().replace("-", "_").split("_"))
    whole = [n for n in by_lower if words <= set(n.replace("-", "_").split("_"))]
    far = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.55)
    found = [*close, *whole, *far]
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The sentence for an error message about an unknown name."""
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"Did you mean '{near}'?"
    return f"Known: {', '.join(sorted(names))}."
