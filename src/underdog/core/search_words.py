"""The sentences that a search says."""

from __future__ import annotations

from underdog.core.search_records import Settings, Stopping

LIKELY_TO_FAIL = 0.3
HARD_TO_GET = 0.5  # the chance below which a candidate counts for less
SPEAKS = 0.3  # a reference that explains so much is named


def reason_to_test(
    *,
    gain: float,
    chance_of_failure: float,
    had: float,
    best: str | None,
    tested: int,
    alike: tuple[str, float] | None,
) -> str:
    """Why a candidate is the next to test, in one sentence."""
    if best is None and tested == 0:
        said = f"Expected to reach {gain:.0%} of the best there is, the most for a first test"
    elif best is None:
        said = f"No test holds yet; expected to reach {gain:.0%} of the best there is"
    elif gain > 0:
        said = f"Expected to gain {max(gain, 0.001):.1%} of the best there is over '{best}'"
    else:
        said = f"Nothing is expected to beat '{best}'; this one is the nearest to it"
    if alike is not None and alike[1] >= SPEAKS:
        said += f", as '{alike[0]}' did"
    if chance_of_failure >= LIKELY_TO_FAIL:
        said += f"; it may fail ({chance_of_failure:.0%})"
    if had < HARD_TO_GET:
        said += f"; it is hard to get (chance {had:.0%})"
    return f"{said}."


def reason_to_stop(settings: Settings, loss: float, high: float | None, tests: int) -> Stopping:
    """Whether to stop, given the expected loss and its 90th percentile (None: none is left)."""
    if high is None:
        return Stopping(True, loss, loss, "There is no candidate left to test.")
    told = f"Stopping now is expected to lose {loss:.1%} of the best there is"
    told += f" ({high:.1%} in one case of ten)"
    if loss >= 1.0:
        return Stopping(False, 1.0, 1.0, "Nothing that was tested holds yet.")
    if tests < settings.fewest_tests:
        return Stopping(False, loss, high, f"{told}, by too few tests to be trusted.")
    stop = loss <= settings.stop_loss and high <= settings.stop_loss_high
    return Stopping(stop, loss, high, f"{told}.")
