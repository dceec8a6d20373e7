"""The utility: what is maximised or minimised, as ``--by`` says it.

One expression over metrics and offer columns, or several with commas between them: a
lexicographic rule with a tolerance. ``dollars_to_train, hours_to_train`` with 10 % means: among
the offers within 10 % of the cheapest, the fastest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from underdog.core.columns import BY_NAME
from underdog.core.expression import Expression, parse
from underdog.core.metrics import LOWER_COLUMNS, METRICS, NEED_SAMPLES, Better, metric_columns
from underdog.errors import UsageError

COLUMNS = BY_NAME | {column.name: column for column in metric_columns()}


@dataclass(frozen=True, slots=True)
class Term:
    """One expression of a utility with its direction and unit ('' where it has none)."""

    expression: Expression
    better: Better
    unit: str

    @property
    def sign(self) -> int:
        """1 where higher is better, else -1."""
        return 1 if self.better == "higher" else -1


@dataclass(frozen=True, slots=True)
class Utility:
    """Terms in order of weight; every one but the last holds within ``tolerance`` of its best."""

    text: str
    terms: tuple[Term, ...]
    tolerance: float

    @property
    def first(self) -> Term:
        """The term that leads."""
        return self.terms[0]

    def uses(self, *columns: str) -> bool:
        """Whether a term names one of the columns or metrics."""
        return any(set(term.expression.columns) & set(columns) for term in self.terms)

    @property
    def describes(self) -> str:
        """The rule in words."""
        if len(self.terms) == 1:
            return f"{self.text} ({self.first.better} is better)"
        rules = [f"{'most' if t.sign > 0 else 'least'} {t.expression.text}" for t in self.terms]
        return f"{', then '.join(rules)} within {self.tolerance:.3g} of the best"


def parse_utility(
    text: str,
    *,
    direction: Literal["higher", "lower"] | None = None,
    tolerance: float = 0.0,
    has_samples: bool = False,
) -> Utility:
    """Read what ``--by`` says.

    Args:
        text: an expression, or several with commas between them.
        direction: overrides the direction of every term; without it a bare metric has its own,
            and of any other expression higher is better.
        tolerance: how far from the best a term may be for the next one to decide, as a fraction.
        has_samples: whether the samples of the whole job are known.

    Raises:
        ExpressionError: a term cannot be read or names an unknown column or metric.
        UsageError: a metric needs the job's samples, or a tolerance stands without a second term.
    """
    parts = _split(text)
    terms = tuple(_term(part, direction) for part in parts)
    utility = Utility(text.strip(), terms, tolerance)
    if not has_samples and utility.uses(*NEED_SAMPLES):
        raise UsageError(
            f"'{text}' needs to know how many samples the whole job has.",
            "Add --samples, as in: --samples 300e6",
        )
    if tolerance and len(terms) == 1:
        raise UsageError(
            f"A tolerance needs a second rule to decide within it, and '{text}' is one alone.",
            'Write it like: --by "dollars_to_train, hours_to_train" --tolerance 10%',
        )
    return utility


def _term(text: str, direction: Better | None) -> Term:
    expression = parse(text, COLUMNS, kind="number")
    metric = METRICS.get(text.lower())
    column = BY_NAME.get(text.lower())
    better: Better = metric.better if metric else "higher"
    if column and column.name in LOWER_COLUMNS:
        better = "lower"
    unit = metric.unit if metric else column.unit if column else ""
    return Term(expression, direction or better, unit)


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside brackets and quotes."""
    parts, depth, quoted = [""], 0, False
    for character in text:
        if character == "'":
            quoted = not quoted
        depth += (character == "(") - (character == ")") if not quoted else 0
        if character == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
