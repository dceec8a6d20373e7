"""What is said of long work reaches who asked for it, and nobody else."""

from __future__ import annotations

from underdog.progress import say, telling, track

Said = list[tuple[str, int, int | None]]


def test_nobody_is_told_unless_somebody_asked() -> None:
    items = [1, 2, 3]
    assert track(items, "things") is items
    said: Said = []
    with telling(lambda *told: said.append(told)):
        say("reading")
    say("too late")
    assert said == [("reading", 0, None)]


def test_items_are_counted_now_and_then() -> None:
    said: Said = []
    with telling(lambda *told: said.append(told)):
        assert list(track(range(5), "things", every=2)) == [0, 1, 2, 3, 4]
        assert list(track(iter("ab"), "letters", every=1)) == ["a", "b"]
    assert said == [
        ("things", 0, 5),
        ("things", 2, 5),
        ("things", 4, 5),
        ("letters", 0, None),
        ("letters", 1, None),
    ]


def test_the_one_inside_hears_it_alone() -> None:
    outer: Said = []
    inner: Said = []
    with telling(lambda *told: outer.append(told)):
        with telling(lambda *told: inner.append(told)):
            say("inside")
        say("outside")
    assert [inner, outer] == [[("inside", 0, None)], [("outside", 0, None)]]
