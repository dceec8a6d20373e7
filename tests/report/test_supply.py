"""What is printed of attempts and of what to ask for next."""

from __future__ import annotations

from rich.console import Console

from underdog.core.attempts import Attempt, Place
from underdog.report.attempts import attempts_table
from underdog.report.supply import fallback

PLACE = Place(
    provider="aws", region="us-east-1", zone="", instance_type="g5.xlarge", purchase="spot"
)


def printed(what: object) -> str:
    console = Console(width=160, color_system=None)
    with console.capture() as captured:
        console.print(what)
    return captured.get()


def step(offer: str, reached: float | None, nodes: int = 1) -> dict[str, object]:
    return {"offer": offer, "nodes": nodes, "patience_seconds": 1200.0, "reached": reached}


def test_the_fall_back_in_a_sentence() -> None:
    steps = [step("a", 1.0), step("b", 0.254), step("c", 0.004, nodes=2), step("d", None)]
    assert printed(fallback(steps)) == (
        "If a is not to be had within 20 min: b (reached in 25%), "
        "then 2 × c (reached in under 1 %), then d\n"
    )


def test_attempts_as_a_table() -> None:
    seen = [
        Attempt(place=PLACE, at=0.0, got=True, waited=0.0, held=7200.0, interrupted=True),
        Attempt(place=PLACE, at=86400.0, got=False, refusal="no_capacity", words="\x1b[2J"),
    ]
    lines = printed(attempts_table(seen, lambda one: "" if one.got else "again")).splitlines()
    assert lines[1].split() == [
        "1970-01-01", "00:00", "aws/us-east-1/g5.xlarge/spot", "1", "got,", "taken", "away",
        "0", "s", "2", "h",
    ]  # fmt: skip
    assert lines[2].split()[-3:] == ["no", "capacity", "again"]
