"""Many questions at once lead to what each of them leads to alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from offers_and_trials import offer, plain, table, trial

from underdog.core import choosing, scoring
from underdog.core.choosing import Request, constraints_of
from underdog.core.columns import BY_NAME
from underdog.core.evidence import gather
from underdog.core.expression import parse
from underdog.core.laid_out import lay_out
from underdog.core.rescoring import Scores, rescore
from underdog.core.utility import parse_utility

BY = (
    ("samples_per_dollar", 0.0),
    ("samples_per_second", 0.0),
    ("dollars_to_train", 0.0),
    ("samples_per_second / (price_per_hour + 0.5)", 0.0),
    ("vcpus", 0.0),
    ("dollars_to_train, hours_to_train", 0.3),
    ("hours_to_train, dollars_to_train", 0.0),
)
WHERE = (None, "price_per_hour < 2", "region = 'eu-west-1'")
TYPES = (offer("a.large"), offer("b.large", accelerator="L4"), plain("c.large"), plain("d.large"))
PRICES = st.sampled_from([0.25, 0.5, 1.0, 1.0, 1.5, 4.0, None])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[Any], list[Request]]:
    rows = []
    for kind in TYPES:
        for region in draw(st.sets(st.sampled_from(["us-east-1", "eu-west-1"]), min_size=1)):
            for purchase in draw(st.sets(st.sampled_from(["on-demand", "spot"]), min_size=1)):
                price = draw(PRICES)
                known = {"price_unknown_reason": None if price else "none"}
                named = {"region": region, "purchase": purchase, "price_per_hour": price}
                rows.append(kind | known | named)
    measured = draw(st.sets(st.sampled_from([k["instance_type"] for k in TYPES]), min_size=1))
    trials = [trial(k, draw(st.sampled_from([50.0, 100.0, 200.0]))) for k in sorted(measured)]
    requests = []
    for by, tolerance in draw(st.lists(st.sampled_from(BY), min_size=1, max_size=4)):
        limits: dict[str, Any] = {}
        if draw(st.booleans()):
            limits |= {"deadline_hours": draw(st.sampled_from([1.0, 20.0]))}
        if draw(st.booleans()):
            limits |= {"budget": draw(st.sampled_from([5.0, 50.0]))}
        where = draw(st.sampled_from(WHERE))
        utility = parse_utility(by, tolerance=tolerance, has_samples=True)
        condition = None if where is None else parse(where, BY_NAME)
        requests.append(
            Request(utility=utility, where=condition, samples=3e6, machines=(1, 2), **limits)
        )
    return rows, trials, requests


def rescored(
    offers: list[dict[str, Any]], trials: list[Any], requests: list[Request], **how: Any
) -> list[Scores]:
    evidence = gather(trials)
    laid_out, _ = lay_out(table(offers), evidence, requests[0].machines)
    laid_out.run(f"CREATE TEMP VIEW joined AS {scoring.joined(requests[0].samples)}")
    questions = [
        scoring.Question(
            request.utility,
            constraints_of(request, evidence),
            deadline_hours=request.deadline_hours,
            budget=request.budget,
        )
        for request in requests
    ]
    given = {"kept": "FALSE", **how}
    return rescore(laid_out, questions, **given)


# each example asks the database some thirty times
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_each_question_gets_the_leader_that_it_gets_alone(world: Any) -> None:
    rows, trials, requests = world
    for best in (False, True):
        for request, scores in zip(
            requests, rescored(rows, trials, requests, best=best), strict=True
        ):
            alone = choosing.choose(table(rows), gather(trials), request)
            found = scores.leader()
            if not alone.ranked:
                assert found is None
                continue
            first, groups = alone.ranked[0], alone.groups
            if best is (groups["source"][first] == "measured"):
                continue  # the best of all is asked for where no measured one may lead
            assert found is not None
            assert scores.rows.offer[found] == groups["offer"][first]
            assert scores.rows.machines[found] == groups["machines"][first]
            ends = [scores.value[found], scores.low[found], scores.high[found]]
            assert ends == pytest.approx([groups[n][first] for n in ("u", "u_low", "u_high")])


def test_a_row_that_is_asked_for_is_told_although_it_is_out() -> None:
    utility = parse_utility("samples_per_dollar")
    rows = [TYPES[0], TYPES[1] | {"price_per_hour": None, "price_unknown_reason": "none"}]
    (found,) = rescored(rows, [trial("a.large", 100.0)], [Request(utility=utility)], kept="row = 1")
    names = found.rows.offer.tolist()
    out = names.index("aws/us-east-1/b.large/on-demand")
    assert found.question.constraints[int(found.excluded[out])].name == "price unknown"
    assert not found.counts[out]
