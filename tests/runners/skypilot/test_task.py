"""What SkyPilot would be asked for, of offers of the catalog and of clusters of one's own."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from underdog.catalog import snapshot
from underdog.core.candidates import as_offer
from underdog.errors import UsageError
from underdog.model import Offer, Price
from underdog.runners import Job, _skytask, skypilot
from underdog.runners._skytask import Target, as_yaml, limit_minutes, task_of


def offer(provider: str, instance_type: str, **more: object) -> Offer:
    given: dict[str, Any] = {"region": "unknown", "price": Price(per_hour=2.0, source="me")}
    return Offer(provider=provider, instance_type=instance_type, **(given | more))


def rendered(one: Offer, target: Mapping[str, Any] | None = None, **more: object) -> dict[str, Any]:
    """The task as whoever reads the dry run gets it: through YAML."""
    given: dict[str, Any] = {"workload": "w", "candidate": "c", "command": ("python", "train.py")}
    job = Job(offer=one, target=target or {}, **(given | more))
    task: dict[str, Any] = yaml.safe_load("\n".join(skypilot.SkyPilot.render(NOBODY, job).lines))
    return task


NOBODY: Any = None  # rendering is pure: it asks nothing of the runner


def resources(one: Offer, **target: object) -> dict[str, Any]:
    found: dict[str, Any] = dict(rendered(one, target)["resources"])
    found.pop("autostop", None)
    return found


IN_THE_CATALOG = [
    ("aws/us-east-1/p4d.24xlarge/on-demand", {"infra": "aws/us-east-1"}),
    ("aws/us-east-1/g6f.large/on-demand", {"infra": "aws/us-east-1"}),
    ("gcp/us-central1/a2-highgpu-1g/on-demand", {"infra": "gcp/us-central1"}),
    ("gcp/us-central1/a2-highgpu-1g/spot", {"infra": "gcp/us-central1", "use_spot": True}),
    ("gcp/us-central1/n2-standard-8/on-demand", {"infra": "gcp/us-central1"}),
    ("azure/eastus/Standard_NC24ads_A100_v4/on-demand", {"infra": "azure/eastus"}),
    ("lambda/us-west-1/gpu_1x_a10/on-demand", {"infra": "lambda/us-west-1"}),
    ("verda/FIN-01/1A100.22V/spot", {"infra": "verda/FIN-01", "use_spot": True}),
    ("oci/unknown/BM.GPU.B200.8/on-demand", {"infra": "oci"}),
    ("seeweb/it-fr2/ECS1GPU/on-demand", {"infra": "seeweb/it-fr2"}),
]


@pytest.fixture(scope="module")
def sold() -> dict[str, Offer]:
    names = [name for name, _ in IN_THE_CATALOG]
    kinds = ", ".join("'" + name.split("/")[2] + "'" for name in names)
    rows = snapshot.load().table.connection.execute(
        f"SELECT * FROM offers WHERE instance_type IN ({kinds})"
    )
    columns = [d[0] for d in rows.description or ()]
    offers = [as_offer(dict(zip(columns, values, strict=True))) for values in rows.fetchall()]
    return {one.id: one for one in offers}


@pytest.mark.parametrize(("name", "expected"), IN_THE_CATALOG)
def test_an_offer_of_the_catalog_needs_no_target(
    name: str, expected: dict[str, Any], sold: dict[str, Offer]
) -> None:
    assert resources(sold[name]) == {"instance_type": name.split("/")[2], **expected}


@pytest.mark.parametrize(
    ("one", "target", "told"),
    [
        (offer("aws", "ml.p4d.24xlarge"), {}, "is one of SageMaker.*itself: p4d.24xlarge"),
        (offer("aws", "p4d.24xlarge", purchase="reserved"), {}, "is 'reserved'.*on demand"),
        (offer("lium", "H100_8x"), {}, "no machines of 'lium'.*infra = "),
        (offer("gpc", "n1"), {}, "Did you mean 'gcp'"),
        (offer("gcp", "ct6e-standard-8t", accelerator="TPU-v6e"), {}, "tpu-v6e-8"),
        (offer("aws", "t"), {"zone": "a"}, "`zone`.*targets.md"),
        (offer("aws", "t"), {"use_spot": "yes"}, "use_spot"),
        (offer("aws", "t"), {"zones": ["us-east-1a", "us-east-1b"]}, "CLOUD/REGION"),
    ],
)
def test_what_cannot_be_started_says_why(one: Offer, target: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=f"(?s){told}"):
        rendered(one, target)


def test_a_target_goes_before_the_offer() -> None:
    aws = offer("aws", "p4d.24xlarge", region="us-east-1", zone="us-east-1b")
    assert resources(aws)["infra"] == "aws/us-east-1/us-east-1b"
    assert resources(aws, region="eu-west-1")["infra"] == "aws/eu-west-1"
    assert resources(aws, infra="gcp", instance_type="n2-standard-8")["infra"] == "gcp"
    assert resources(aws, zones=["us-east-1d"])["infra"] == "aws/us-east-1/us-east-1d"
    several = resources(aws, zones=["us-east-1d", "us-east-1a"], use_spot=True)
    assert several["ordered"] == [
        {"infra": "aws/us-east-1/us-east-1d"},
        {"infra": "aws/us-east-1/us-east-1a"},
    ]
    assert several["use_spot"]
    disk = resources(aws, disk_size=500, disk_tier="high", image_id="docker:me/it")
    assert (disk["disk_size"], disk["disk_tier"], disk["image_id"]) == (500, "high", "docker:me/it")
    reserved = offer("aws", "p4d.24xlarge", purchase="reserved", term="capacity-block")
    assert "use_spot" not in resources(reserved, use_spot=False)
    tpu = offer("gcp", "ct6e-standard-8t", accelerator="TPU-v6e", accelerator_count=8)
    assert resources(tpu, accelerators="tpu-v6e-8") == {"infra": "gcp", "accelerators": "tpu-v6e-8"}


def test_a_cluster_of_ones_own_is_asked_for_what_the_offer_has() -> None:
    box = offer("mine", "box", vcpus=8, memory_gib=64, accelerator="H100", accelerator_count=2)
    asked = {"accelerators": "H100:2", "cpus": "8", "memory": "64"}
    assert resources(box, infra="k8s/lab") == {"infra": "k8s/lab", **asked}
    assert resources(box, infra="slurm/lab", cpus="4+")["cpus"] == "4+"
    minutes = rendered(box, {"infra": "slurm/lab"})["config"]["slurm"]["sbatch_options"]["time"]
    assert minutes == rendered(box, {"infra": "slurm/lab"})["resources"]["autostop"][
        "idle_minutes"
    ] + (_skytask.PROVISION_MINUTES)


def test_the_machine_takes_itself_down() -> None:
    autostop = rendered(offer("aws", "m6i.large"), price=2.0, dollars=1.0)["resources"]["autostop"]
    assert autostop["down"] is True
    assert autostop["wait_for"] == "none"
    assert autostop["idle_minutes"] == 22 + _skytask.COLLECT_MINUTES  # (900 + 120 + 2 · 120 + 30) s
    capped = rendered(offer("aws", "m6i.large"), price=6.0, dollars=1.0)["resources"]["autostop"]
    assert capped["idle_minutes"] == 11 + _skytask.COLLECT_MINUTES  # 10 min and the 30 s of a kill
    job = Job(workload="w", candidate="c", offer=offer("verda", "1A100.22V"), command=("x",))
    lines = skypilot.SkyPilot.render(NOBODY, job).lines
    assert "cannot take it down by itself" in lines[0]
    assert not any("autostop" in line for line in lines)


@given(seconds=st.floats(1, 1e6), timeout=st.floats(1, 1e5), cap=st.floats(0.01, 1e4))
def test_the_limit_is_never_before_the_job_may_have_ended(
    seconds: float, timeout: float, cap: float
) -> None:
    job = Job(
        workload="w", candidate="c", offer=offer("aws", "t"), seconds=seconds, timeout=timeout,
        price=1.0, dollars=cap,
    )  # fmt: skip
    left = limit_minutes(job) * 60 - job.longest
    assert 120 < left <= 60 * (_skytask.COLLECT_MINUTES + 2)


def test_rendering_is_the_same_whenever_it_is_done(tmp_path: Path) -> None:
    job = Job(id="T1", workload="w", candidate="c", offer=offer("aws", "t"), command=("x",))
    once, again = (skypilot.SkyPilot.render(NOBODY, job) for _ in range(2))
    assert once == again
    assert once.lines[0].startswith("# cluster underdog-t1; ")


# what YAML cannot hold as it stands is quoted, as JSON does up to here
LETTERS = st.characters(codec="utf-8", max_codepoint=0xFFFF, exclude_characters="\0")


@given(st.lists(st.text(LETTERS, max_size=20)), st.text(LETTERS, max_size=20))
def test_any_command_is_printed_as_it_is_run(words: list[str], workload: str) -> None:
    job = Job(workload=workload, candidate="c", offer=offer("aws", "t"), command=("run", *words))
    task = task_of(job, Target(python="/usr/bin/python3"))
    assert yaml.safe_load("\n".join(as_yaml(task))) == task
    assert shlex.join(job.command) in task["run"]


def run(script: str, home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "HOME": str(home), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_other_nodes_run_the_bare_command(tmp_path: Path) -> None:
    words = ("sh", "-c", 'echo "$NODE_RANK of $NNODES at $MASTER_ADDR:$MASTER_PORT in $(pwd)"')
    two = offer("aws", "p4d.24xlarge", nodes=2)
    task = rendered(two, {"shell_setup": ["echo ready"]}, command=words, folder=tmp_path)
    assert task["num_nodes"] == 2
    (tmp_path / "sky_workdir").mkdir()
    nodes = {"SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2", "SKYPILOT_NUM_NODES": "2"}
    done = run(task["run"], tmp_path, SKYPILOT_NODE_RANK="1", **nodes)
    assert not (tmp_path / ".underdog" / "job.sh").exists()  # the first node may be reading it
    assert done.stdout.split("\n")[:2] == [
        "ready",
        f"1 of 2 at 10.0.0.1:{_skytask.MASTER_PORT} in {tmp_path}/sky_workdir",
    ]
    assert done.returncode == 0


def test_where_python_is_too_old_uv_brings_a_newer_one(tmp_path: Path) -> None:
    (tmp_path / ".local" / "bin").mkdir(parents=True)
    programs = {
        "bin/python3": "exit 1",  # it is too old, or has no pip to give
        ".local/bin/uv": f'echo "$*" >>{tmp_path}/uv.log; echo {tmp_path}/new',
        "new": f'echo "$*" >>{tmp_path}/new.log; exit 1',
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    script = rendered(offer("aws", "m6i.large"))["run"]
    run(script, tmp_path, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    asked = (tmp_path / "uv.log").read_text().splitlines()
    assert asked == ["python install 3.12", "python find --no-project 3.12"]
    assert "-m venv" in (tmp_path / "new.log").read_text()
