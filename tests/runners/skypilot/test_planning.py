"""SkyPilot itself, in a process of its own with a small catalog: it takes our tasks as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from sky_site import with_skypilot

from underdog.errors import RefusedError
from underdog.model import Offer, Price
from underdog.runners import Job
from underdog.runners._skyerrors import understood
from underdog.runners._skytask import Target, task_of

pytestmark = [
    pytest.mark.slow,
    with_skypilot,
]

HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
    "AvailabilityZone,Arch,LocalDiskType,NVMeSupported,LocalDiskSize,LocalDiskCount,"
    "MaximumEfaInterfaces"
)
ENDS = "us-east-1,use1-az6,x86_64,,,,,"  # zones by their ids, as SkyPilot's own file has them
VMS = [
    f"m6i.large,,,2.0,8.0,,0.096,0.04,{ENDS}",
    f"p5.48xlarge,H100,8.0,192.0,2048.0,,55.04,20.0,{ENDS}",
    f"p4d.24xlarge,A100,8.0,96.0,1152.0,,32.77,9.5,{ENDS}",
]
FILES = {
    "aws/vms.csv": "\n".join([HEADER, *VMS, ""]),
    "aws/images.csv": "Tag,Region,OS,OSVersion,ImageId,CreationDate\n",
    "aws/instance_quota_mapping.csv": "InstanceType,SpotInstanceCode,OnDemandInstanceCode\n",
    "common/accelerators.csv": "AcceleratorName,Clouds\nA100,AWS\nH100,AWS\n",
    "common/metadata.csv": "GPU,MemoryGB,Manufacturer\nA100,40,NVIDIA\nH100,80,NVIDIA\n",
}
PLAN = """
import json, sys, sky
for task in json.load(sys.stdin):
    try:
        made = sky.Task.from_yaml_config(task)
        asked = next(iter(made.resources))
        found = asked.cloud.get_feasible_launchable_resources(asked, num_nodes=made.num_nodes)
    except Exception as error:
        print("PLAN", json.dumps({"error": [type(error).__name__, str(error)]}))
        continue
    print("PLAN", json.dumps({
        "found": [[r.instance_type, r.region, r.use_spot, r.get_cost(3600)]
            for r in found.resources_list],
        "nodes": made.num_nodes,
        "autostop": asked.autostop_config.to_yaml_config(),
    }))
"""


def offer(instance_type: str, **more: Any) -> Offer:
    price = Price(per_hour=1.0, source="me")
    return Offer(
        provider="aws", region="us-east-1", instance_type=instance_type, price=price, **more
    )


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What SkyPilot would start for each of the offers, all asked in one process."""
    home = tmp_path_factory.mktemp("home")
    for name, text in FILES.items():
        path = home / ".sky" / "catalogs" / "v8" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    folder = home / "code"
    folder.mkdir()
    jobs = [
        Job(workload="w", candidate="c", offer=one, command=("x",), folder=folder)
        for one in (
            offer("m6i.large"),
            offer("p5.48xlarge", nodes=2),
            offer("p4d.24xlarge", purchase="spot"),
            offer("p9.nothing"),
        )
    ]
    tasks = [task_of(job, Target(python="python3")) for job in jobs]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PLAN],
        input=json.dumps(tasks),
        env={**os.environ, "HOME": str(home), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("PLAN ")]
    assert lines, done.stderr
    return [json.loads(line.removeprefix("PLAN ")) for line in lines]


def test_it_finds_the_machine_of_the_offer_and_its_price(plans: list[dict[str, Any]]) -> None:
    assert [plan.get("found") for plan in plans] == [
        [["m6i.large", "us-east-1", False, 0.096]],
        [["p5.48xlarge", "us-east-1", False, 55.04]],
        [["p4d.24xlarge", "us-east-1", True, 9.5]],
        None,
    ]
    assert [plan["nodes"] for plan in plans[:3]] == [1, 2, 1]


def test_it_knows_when_to_take_the_machine_down(plans: list[dict[str, Any]]) -> None:
    limit = {"idle_minutes": 25, "down": True, "wait_for": "none"}
    assert [plan["autostop"] for plan in plans[:3]] == [limit] * 3


def test_a_type_that_it_does_not_know_is_not_offered(plans: list[dict[str, Any]]) -> None:
    name, words = plans[3]["error"]
    found = understood(type(name, (Exception,), {})(words), provider="aws")
    assert isinstance(found, RefusedError)
    assert (found.kind, "p9.nothing" in found.message) == ("not_offered", True)
