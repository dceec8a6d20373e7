"""Needs and layers of service through ``choose``: what is out, what is doubted, what costs what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from offers_and_trials import offer, plain, trial

from underdog.errors import UsageError
from underdog.model import Decision, Software
from underdog.store import open_store
from underdog.verbs.choose import choose

ROWS = [
    offer("g5.xlarge", 1.0),
    offer("h100", 3.0, accelerator="H100", compute_capability=9.0, fp32_tflops=67),
    offer("b200", 5.0, accelerator="B200", compute_capability=10.0, fp32_tflops=75),
    offer("mi50", 0.5, accelerator="MI50", compute_capability=None, software="rocm"),
    offer("ml.g5.xlarge", 1.4, service="sagemaker"),
    plain("m5.large", 0.1),
]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A store with a trial of g5.xlarge, and offers."""
    folder = tmp_path_factory.mktemp("needs")
    offers = folder / "offers.json"
    offers.write_text(json.dumps([{k: v for k, v in row.items() if v is not None} for row in ROWS]))
    with open_store(str(folder / "store.sqlite3")) as opened:
        software = Software(framework="torch", framework_version="2.6.0+cu118")
        opened.save(trial(software=software))
    return {"store": str(folder / "store.sqlite3"), "offers": str(offers), "save": False}


def reasons(decision: Decision) -> dict[str, str]:
    return {line["offer"].split("/")[2]: line["reason"] for line in decision.ledger}


def codes(decision: Decision) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for caveat in decision.caveats:
        found.setdefault(caveat.code, []).append(f"{caveat.message} {caveat.remedy}")
    return found


def test_needs_rule_out_with_their_reason(given: dict[str, Any]) -> None:
    decision = choose(**given, needs=("flash-attention-3", "bf16"))
    told = reasons(decision)
    assert told["g5.xlarge"].endswith("reaches compute capability 9.0; A10G has 8.6")
    assert "MI50" in told["mi50"]
    assert "this has no accelerator" in told["m5.large"]
    assert [entry["offer"]["instance_type"] for entry in decision.ranking] == ["h100"]
    assert any(line.startswith("needs flash-attention-3:") for line in decision.constraints)
    assert codes(decision)["software_too_old"] == [
        "FlashAttention 3 needs CUDA 12.3; the trials ran 11.8. Update it, and measure again: "
        "underdog support flash-attention-3."
    ]


def test_what_is_unknown_stays_with_a_caveat(given: dict[str, Any]) -> None:
    decision = choose(**given, needs=("bf16",), software=("cuda", "rocm"))
    assert "mi50" in [entry["offer"]["instance_type"] for entry in decision.ranking]
    (doubt,) = [text for text in codes(decision)["support_unknown"] if "MI50" in text]
    assert doubt.startswith("It is not known whether bfloat16 reaches MI50")


def test_a_low_rate_of_fp64_is_out_or_told(given: dict[str, Any]) -> None:
    assert "1/64 of its rate of fp32" in reasons(choose(**given, needs=("fp64",)))["g5.xlarge"]
    decision = choose(**given, needs=("fp64-any",))
    assert "g5.xlarge" in [entry["offer"]["instance_type"] for entry in decision.ranking]
    assert "A10G computes fp64 at 1/64" in codes(decision)["support_limited"][0]


def test_software_that_does_not_reach_is_told_or_ruled_out(given: dict[str, Any]) -> None:
    decision = choose(**given)
    (told,) = codes(decision)["software_does_not_reach"]
    assert "PyTorch 2.6.0, built for CUDA 11.8" in told
    assert "no code for B200 (compute capability 10.0)" in told
    assert "PyTorch 2.7 or newer" in told
    pinned = choose(**given, needs=("recorded-software",))
    assert "no code for compute capability 10.0 of B200" in reasons(pinned)["b200"]
    assert "software_does_not_reach" not in codes(pinned)


def test_pinned_software_of_which_nothing_is_known_is_told(
    given: dict[str, Any], tmp_path: Path
) -> None:
    store = str(tmp_path / "other.sqlite3")
    with open_store(store) as opened:
        opened.save(trial(software=Software(framework="torch", framework_version="1.13.1")))
    asked = {**given, "store": store}
    decision = choose(**asked, needs=("recorded-software",))
    (told,) = codes(decision)["support_unknown"]
    assert told.startswith("It is not known what PyTorch 1.13.1 has code for")
    assert "support_unknown" not in codes(choose(**asked))


def test_a_library_of_a_service_is_out_on_the_bare_machine(given: dict[str, Any]) -> None:
    told = reasons(choose(**given, needs=("sagemaker-model-parallel",)))
    assert "this is the bare machine" in told["g5.xlarge"]
    assert not told["ml.g5.xlarge"].startswith("needs")


def test_mistyped_needs_are_told_before_anything_else(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="Did you mean 'flash-attention-3'"):
        choose(**{**given, "store": "/nowhere/at/all"}, needs=("flash-atention-3",))


def test_layers_of_service_stand_in_the_decision(given: dict[str, Any], tmp_path: Path) -> None:
    apis = tmp_path / "apis.csv"
    apis.write_text("name,per_million_tokens\nacme,1\n")
    decision = choose(**given, monthly=36e6, apis=apis, tokens_per_sample=(6, 4), utilisation=0.9)
    found = decision.services
    assert {layer["name"] for layer in found["layers"]} == {"bare machine", "sagemaker", "acme"}
    (acme,) = [meeting for meeting in found["break_even"] if meeting["name"] == "acme"]
    assert acme["below"] == pytest.approx(730 / 1e-5)
    assert choose(**given).services == {}
    job = choose(**given, samples=36e6, apis=apis, tokens_per_sample=(10,), idle="30m").services
    assert job["hours"] is None
    assert job["idle_hours"] == 0.5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"utilisation": 0.5}, "--monthly or --apis is missing"),
        ({"apis": "A"}, "--apis needs a volume"),
        ({"apis": "A", "monthly": 1e6}, "'acme' is priced by tokens"),
        ({"monthly": 1e6, "samples": 1e6}, "give one of them"),
        ({"monthly": -1.0}, "--monthly must be positive"),
        ({"monthly": 1e6, "utilisation": 1.5}, "--utilisation must be a share"),
        ({"apis": "A", "samples": 1e6, "utilisation": 0.5}, "--monthly is missing"),
        ({"monthly": 1e6, "idle": -1.0}, "--idle must be 0 or more"),
        ({"monthly": 1e6, "tokens_per_sample": (1, 2, 3)}, "--tokens-per-sample must be as"),
        ({"apis": "A", "monthly": 1e6, "tokens_per_sample": (0.0,)}, "no price for these tokens"),
    ],
)
def test_questions_that_cannot_be(
    given: dict[str, Any], tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    if "apis" in options:
        options["apis"] = tmp_path / "apis.csv"
        options["apis"].write_text("name,per_million_tokens\nacme,1\n")
    with pytest.raises(UsageError) as caught:
        choose(**given, **options)
    assert said in str(caught.value)
