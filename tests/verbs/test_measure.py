"""``underdog.measure`` from Python, on real PyTorch where it is there."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import underdog
from underdog.errors import StoreError, UsageError
from underdog.model import Accelerator, Machine
from underdog.store import open_store
from underdog.verbs.measure import Settings, offer_of, peaks_of, plan, printable

LOOP = """
import json, sys, time, torch
torch.set_num_threads(1)
steps, batch = int(sys.argv[1]), int(sys.argv[2])
model = torch.nn.Linear(32, 4)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
data = torch.utils.data.TensorDataset(torch.randn(steps * batch, 32))
ends = []
for (x,) in torch.utils.data.DataLoader(data, batch):
    time.sleep(0.002)
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    ends.append(time.perf_counter())
print("own ends", json.dumps(ends))
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite3")


@pytest.fixture
def loop(tmp_path: Path) -> str:
    pytest.importorskip("torch")
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    return str(path)


@pytest.mark.slow
@pytest.mark.frameworks
def test_a_real_training_loop(loop: str, store: str, capfd: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, loop, "600", "8"]
    (trial,) = underdog.measure(command, whole=True, store=store, price=2.0, workload="mine")
    assert trial.status == "ok", trial.reason
    assert trial.workload == "mine"
    assert trial.measurement is not None
    assert trial.measurement.steps == 600
    assert trial.measurement.samples == 4800
    assert trial.measurement.batch_size == 8
    rate = trial.measurement.samples_per_second
    assert rate is not None
    ends = json.loads(capfd.readouterr().out.partition("own ends")[2])
    first = trial.measurement.warmup_steps
    # both over the same steps, for others may use the machine meanwhile
    own = 8 * (len(ends) - 1 - first) / (ends[-1] - ends[first])
    assert rate.value == pytest.approx(own, rel=0.05)
    assert sum(trial.phases.values()) == pytest.approx(1)
    assert trial.software.framework == "torch"
    assert trial.profile is not None
    assert trial.profile.parameters == 132
    assert trial.profile.cpu_seconds_per_sample is not None
    host = trial.peak_memory_gib["host"]
    assert host is not None
    assert 0.1 < host < 4
    with open_store(store) as kept:
        assert kept.trials(timeline=True) == [trial]


@pytest.mark.slow
@pytest.mark.frameworks
def test_knobs_from_a_thread(loop: str, store: str) -> None:
    found: list[Any] = []
    command = [sys.executable, loop, "80", "{batch}"]

    def work() -> None:
        found.extend(underdog.measure(command, whole=True, store=store, knobs={"batch": [4, 8]}))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(120)
    assert [t.knobs for t in found] == [{"batch": "4"}, {"batch": "8"}]
    assert [t.measurement.samples for t in found] == [320, 640]


def test_a_value_that_cannot_be_taken_changes_nothing(store: str) -> None:
    for options in (
        {"price": -1},
        {"price": float("nan")},
        {"seconds": 0},
        {"precision": float("inf")},
        {"precision": 2},
        {"samples_per_step": -3},
        {"timeout": 0},
        {"whole": True, "seconds": 5},
        {"knobs": {"a": [1]}},
        {"knobs": {"a": []}},
        {"workload": ""},
        {"pattern": "("},
    ):
        with pytest.raises(UsageError):
            underdog.measure(["true"], store=store, **options)  # type: ignore[arg-type]
    assert not Path(store).exists()


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        Settings(command=["true"], price=-1, seconds=-2, precision=3)
    for words in ("--price", "'-1'", "--for", "'-2'", "--precision", "'3'"):
        assert words in str(caught.value)


def test_a_store_that_cannot_be_opened_is_told_before_the_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with pytest.raises(StoreError):
        underdog.measure(["touch", str(mark)], store="/dev/null/store.sqlite3")
    (tmp_path / "text").write_text("this is no store, but a text of some length" * 50)
    with pytest.raises(StoreError):
        underdog.measure(["touch", str(mark)], store=str(tmp_path / "text"))
    assert not mark.exists()


def test_a_plan_says_what_would_be_run() -> None:
    settings = Settings(command=["echo", "{a}"], knobs={"a": [1, 2]}, samples_per_step=4, seconds=9)
    first, second = plan(settings)
    assert first["command"] == ["echo", "1"]
    assert second["knobs"] == {"a": "2"}
    assert first["environment"]["UNDERDOG_SAMPLES_PER_STEP"] == "4.0"
    assert first["limits"] == {"for": 9, "precision": 0.02, "timeout": 120.0}
    assert plan(Settings(command=["true"], whole=True))[0]["limits"]["for"] is None


def test_price_of_a_known_machine_comes_from_the_catalog() -> None:
    machine = Machine(
        provider="aws",
        region="us-east-1",
        instance_type="g5.xlarge",
        purchase="on-demand",
        accelerators=[Accelerator(name="NVIDIA A10G", memory_gib=22.5)],
    )
    offer, price = offer_of(machine, None)
    assert offer is not None
    assert offer.id == "aws/us-east-1/g5.xlarge/on-demand"
    assert offer.accelerator == "A10G"
    assert price.per_hour is not None
    assert price.date
    assert offer_of(machine, 9.5)[1].per_hour == 9.5
    peaks = peaks_of(machine, "bfloat16")
    assert peaks.tflops is not None
    assert peaks.gb_per_s == 600


def test_price_of_an_unknown_machine_is_unknown_with_a_reason() -> None:
    offer, price = offer_of(Machine(), None)
    assert offer is None
    assert price.per_hour is None
    assert "--price" in (price.unknown_reason or "")
    assert peaks_of(Machine(), "float32") == (None, None)
    odd = Machine(provider="aws", region="us-east-1", instance_type="nosuch.type")
    assert offer_of(odd, None)[1].unknown_reason


def test_bytes_that_are_no_text_can_be_recorded() -> None:
    assert printable("a\udcffb") == "a\ufffdb"
    assert printable("ünï\n") == "ünï\n"
