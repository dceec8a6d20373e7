"""The ledger: one line for each candidate, whose reason gives the figures."""

from __future__ import annotations

from offers_and_trials import c1_offers, c1_trials, offer, table, trial

from underdog.core.choosing import Choice, Request, choose
from underdog.core.evidence import gather
from underdog.core.utility import parse_utility
from underdog.model import Trial


def chosen(rows: list[dict[str, object]], trials: list[Trial], machines: tuple[int, ...]) -> Choice:
    request = Request(utility=parse_utility("samples_per_dollar"), machines=machines)
    return choose(table(rows), gather(trials), request)


def test_who_beats_whom_with_the_figures() -> None:
    rows = [*c1_offers(), offer("p2.xlarge", 0.5, accelerator="K80", region="eu-west-1")]
    lines = {line["offer"]: line for line in chosen(rows, c1_trials(), (1,)).ledger()}
    best = lines["aws/us-east-1/g5.xlarge/on-demand"]
    assert (best["verdict"], best["cause"]) == ("best", "measured")
    assert best["reason"] == "measured 19,231 (18,846–19,615) samples/$: the best of the measured"
    assert lines["aws/us-east-1/p2.xlarge/on-demand"]["reason"] == (
        "measured 17,241 (16,897–17,586) samples/$, against 19,231 (18,846–19,615) samples/$ "
        "measured on aws/us-east-1/g5.xlarge/on-demand"
    )


def test_the_same_hardware_at_a_worse_price() -> None:
    rows = [offer(price=1.0), offer(price=1.001, region="eu-west-1")]
    lines = {line["offer"]: line for line in chosen(rows, [trial()], (1,)).ledger()}
    dearer = lines["aws/eu-west-1/g5.xlarge/on-demand"]
    assert dearer["verdict"] == "beaten"
    assert dearer["reason"].startswith("the same hardware as the best, here")


def test_one_line_per_offer_whatever_the_numbers_of_machines() -> None:
    lines = chosen(c1_offers(), c1_trials(), (1, 2, 4)).ledger()
    assert [line["offer"] for line in lines] == sorted({line["offer"] for line in lines})
    assert len(lines) == 4
    # what was measured on one machine tells more than a prediction for several
    assert {line["cause"] for line in lines} == {"measured"}


def test_untested_says_where_the_prediction_comes_from() -> None:
    rows = [offer(), offer("g5.8xlarge", 0.9, vcpus=32), offer("x1", accelerator="X1")]
    rows[2] |= {"fp32_tflops": None}
    lines = {line["offer"]: line for line in chosen(rows, [trial()], (1,)).ledger()}
    predicted = lines["aws/us-east-1/g5.8xlarge/on-demand"]
    assert (predicted["verdict"], predicted["cause"]) == ("untested", "predicted")
    assert predicted["reason"].endswith("; from g5.xlarge: the same accelerator in another machine")
    unknown = lines["aws/us-east-1/x1/on-demand"]
    assert (unknown["verdict"], unknown["cause"]) == ("untested", "not predicted")
