"""The support matrix: its three answers, and that nothing is concluded from what is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offers_and_trials import chosen as choose
from offers_and_trials import offer, plain, trial

from underdog.catalog import support as matrix
from underdog.core import support
from underdog.core.columns import BY_NAME
from underdog.core.support import COLUMNS, Need, Reach
from underdog.errors import UsageError

NEEDS = matrix.needs()
MACHINES = matrix.machines()
KINDS = {name: "DOUBLE" if BY_NAME[name].kind == "number" else "VARCHAR" for name in COLUMNS}


def answer(need: Need, row: dict[str, Any]) -> tuple[str, str | None]:
    return answers(need, [row])[0]


def answers(need: Need, rows: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """The answers for machines; all in the one database, for a new one takes milliseconds."""
    line = ", ".join(f"CAST(? AS {kind}) AS {name}" for name, kind in KINDS.items())
    values = [row.get(name) for row in rows for name in KINDS]
    source = " UNION ALL ".join(f"SELECT {line}" for _ in rows)
    sql = f"SELECT {support.state_sql(need)}, {support.why_sql(need)} FROM ({source})"
    return MACHINES.connection.execute(sql, values).fetchall()


@pytest.mark.parametrize(
    ("need", "accelerator", "state", "why"),
    [
        ("flash-attention-3", "H100", "yes", None),
        ("flash-attention-3", "A10G", "no", "reaches compute capability 9.0; A10G has 8.6"),
        ("flash-attention-3", "B200", "no", "B200 has 10.0"),
        ("flash-attention-3", "TPU-v5e", "no", "TPU-v5e is reached by xla"),
        ("flash-attention-3", "MI300X", "unknown", "Triton"),
        ("flash-attention-2", "T4", "no", "T4 has 7.5"),
        ("flash-attention-2", "B200", "yes", None),
        ("flash-attention-2", "MI250X", "yes", None),
        ("flash-attention-2", "MI100", "no", "does not reach MI100"),
        ("fp64", "V100-16GB", "yes", None),
        ("fp64", "K80", "yes", None),
        ("fp64", "RTX-4090", "no", "RTX-4090 computes fp64 at 1/64 of its rate of fp32"),
        ("fp64", "T4", "no", "1/32"),
        ("fp64", "H20", "no", "1/44"),
        ("fp64", "Trainium2", "no", "does not reach Trainium2"),
        ("fp64-any", "RTX-4090", "yes", "1/64"),
        ("bf16", "V100-16GB", "no", "V100-16GB has 7.0"),
        ("bf16", "TPU-v3", "yes", None),
        ("bf16", "MI50", "unknown", None),
        ("fp8", "A100-80GB", "no", "A100-80GB has 8.0"),
        ("fp8", "L4", "yes", None),
        ("fp4", "H100", "no", "H100 has 9.0"),
        ("torch-compile", "P100", "no", "P100 has 6.0"),
        ("tensorrt", "V100-16GB", "unknown", "until TensorRT 10.4"),
        ("nccl", "MI300X", "no", "MI300X is reached by rocm"),
        ("rccl", "MI300X", "yes", None),
        ("bitsandbytes", "Gaudi2", "yes", None),
        ("sagemaker-model-parallel", "A100-40GB", "no", "the bare machine"),
    ],
)
def test_what_the_matrix_says(need: str, accelerator: str, state: str, why: str | None) -> None:
    sql = f"SELECT {support.state_sql(NEEDS[need])}, {support.why_sql(NEEDS[need])} FROM offers"
    found = MACHINES.run(f"{sql} WHERE accelerator = '{accelerator}'").fetchone()
    assert found is not None
    assert found[0] == state
    assert (found[1] is None) == (why is None)
    assert why is None or why in found[1]


def test_sagemaker_s_library_needs_the_service_and_a_machine_that_it_names() -> None:
    library = NEEDS["sagemaker-model-parallel"]
    under = {"service": "sagemaker", "software": "cuda", "accelerator": "A100-40GB"}
    assert answer(library, {**under, "instance_type": "ml.p4d.24xlarge"})[0] == "yes"
    assert answer(library, {**under, "instance_type": "ml.g5.xlarge"})[0] == "unknown"
    state, why = answer(library, {**under, "service": "vertex-ai", "instance_type": "a2"})
    assert (state, "vertex-ai" in (why or "")) == ("no", True)


def test_machines_without_accelerator() -> None:
    assert answer(NEEDS["fp64"], {"accelerator_count": 0})[0] == "yes"
    state, why = answer(NEEDS["nccl"], {"accelerator_count": 0})
    assert (state, "this has no accelerator" in (why or "")) == ("no", True)
    amx = {"accelerator_count": 0, "cpu_extensions": "avx,avx512_bf16,amx"}
    assert answer(NEEDS["bf16"], amx)[0] == "yes"
    assert answer(NEEDS["bf16"], {**amx, "cpu_extensions": "avx,avx2"})[0] == "unknown"


@pytest.mark.parametrize("key", sorted(NEEDS))
def test_what_is_unknown_of_a_machine_rules_nothing_out(key: str) -> None:
    unknown = {"accelerator": "NPU-9000", "service": NEEDS[key].service}
    assert answer(NEEDS[key], unknown) == ("unknown", None)
    if any(row.stack == "cuda" for row in NEEDS[key].on):
        assert answer(NEEDS[key], {**unknown, "software": "cuda"})[0] == "unknown"


ROWS = st.fixed_dictionaries(
    {},
    optional={
        "compute_capability": st.floats(1, 15),
        "fp64_tflops": st.floats(1e-3, 1e3),
        "fp32_tflops": st.floats(1e-3, 1e3),
        "bf16_tflops": st.floats(1e-3, 1e3),
        "accelerator_count": st.sampled_from([0.0, 0.5, 1.0, 8.0]),
        "accelerator": st.sampled_from(["A100-80GB", "MI300X", "it's", "Gaudi2", "Inferentia"]),
        "software": st.sampled_from(["cuda", "rocm", "xla", "neuron", "habana", "cuda, rocm", ""]),
        "service": st.sampled_from(["sagemaker", "azure-ml"]),
        "instance_type": st.sampled_from(["ml.p4d.24xlarge", "x"]),
        "cpu_extensions": st.sampled_from(["avx2", "amx,avx2", "neon"]),
    },
)


@given(st.sampled_from(sorted(NEEDS)), st.lists(ROWS, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_every_machine_has_an_answer_and_every_no_a_reason(
    key: str, rows: list[dict[str, Any]]
) -> None:
    for state, why in answers(NEEDS[key], rows):
        assert state in ("yes", "no", "unknown")
        assert state != "no" or why


def test_the_first_row_that_covers_a_machine_counts() -> None:
    near = Reach(stack="cuda", since=8.0, until=8.9, source="a")
    far = Reach(stack="cuda", since=8.6, until=9.0, reach="unknown", note="later", source="b")
    need = Need(key="k", title="K", kind="library", on=(near, far))
    gpu = {"accelerator": "G", "software": "cuda"}
    states = {c: answer(need, {**gpu, "compute_capability": c}) for c in (7.5, 8.6, 9.0, 9.1)}
    assert {c: state for c, (state, _) in states.items()} == {
        7.5: "no",
        8.6: "yes",
        9.0: "unknown",
        9.1: "no",
    }
    assert states[9.1][1] == "K reaches compute capability 8.0 to 8.9; G has 9.1"


@pytest.mark.parametrize("name", ["flash_attention_3", "FlashAttention3", "FA3", "flash-attn-3"])
def test_names_are_taken_as_people_write_them(name: str) -> None:
    assert [need.key for need in support.chosen([name, name], NEEDS)] == ["flash-attention-3"]


def test_all_mistyped_names_are_told_together() -> None:
    with pytest.raises(UsageError) as caught:
        support.chosen(["flash-atention-3", "fp64", "zzzz"], NEEDS)
    assert "'flash-atention-3' in the support matrix. Did you mean 'flash-attention-3'?" in str(
        caught.value
    )
    assert "'zzzz'" in str(caught.value)
    assert "underdog support" in str(caught.value)


def test_a_need_rules_out_with_its_reason_and_leaves_the_unknown_in() -> None:
    rows = [
        offer(),
        offer("h.large", 3.0, accelerator="H100", compute_capability=9.0),
        offer("new.large", 2.0, accelerator="NPU", compute_capability=None, software=None),
        plain("m.large"),
    ]
    choice = choose(rows, [trial()], needs=[NEEDS["flash-attention-3"]])
    lines = {line["offer"].split("/")[2]: line for line in choice.ledger()}
    assert lines["g5.xlarge"]["cause"] == "needs flash-attention-3"
    assert lines["g5.xlarge"]["reason"] == (
        "needs flash-attention-3: FlashAttention 3 reaches compute capability 9.0; A10G has 8.6"
    )
    assert "no accelerator" in lines["m.large"]["reason"]
    assert lines["h.large"]["verdict"] == "untested"
    assert lines["new.large"]["cause"] != "needs flash-attention-3"


def test_any_text_of_an_offer_stays_text() -> None:
    state, why = answer(NEEDS["nccl"], {"accelerator": "x'; DROP", "software": "rocm"})
    assert (state, why) == (
        "no",
        "NCCL reaches compute capability 3.5 and above; x'; DROP is reached by rocm",
    )
