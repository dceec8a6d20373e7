"""The cloud's metadata service: which instance type this machine is.

Asked only where the firmware says that a cloud sells the machine, or where the user says so:
``UNDERDOG_METADATA=1`` asks all known services, ``0`` none. ``UNDERDOG_METADATA_URL`` is the
address, http://169.254.169.254 by default. Each service is documented by its cloud:
AWS IMDSv2, Azure Instance Metadata Service, Google Compute Engine metadata server.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from underdog.measuring.cgroup import read_text

ADDRESS = "http://169.254.169.254"
LIMIT = 0.3  # seconds for all services together
VENDORS = {"amazon": "aws", "microsoft": "azure", "google": "gcp"}

WORD = re.compile(r"[A-Za-z0-9][\w.-]*")  # no name of a type or a place looks otherwise

Get = Callable[..., str]


def cloud_facts(
    env: Mapping[str, str] = os.environ, firmware: Path = Path("/sys/class/dmi/id")
) -> dict[str, str]:
    """``provider``, ``region``, ``zone``, ``instance_type``, ``purchase``, those that are told."""
    wish = env.get("UNDERDOG_METADATA", "")
    vendor = (read_text(firmware / "sys_vendor") or "").lower()
    told = [name for word, name in VENDORS.items() if word in vendor]
    names = list(SERVICES) if wish == "1" else [] if wish == "0" else told
    base = env.get("UNDERDOG_METADATA_URL", ADDRESS).rstrip("/")
    for name, facts in ask_all(names, base).items():
        if facts.get("instance_type"):
            return {"provider": name, **facts}
    product = read_text(firmware / "product_name")
    if told == ["aws"] and product and "." in product:  # Nitro machines are named by their type
        return {"provider": "aws", "instance_type": product}
    return {"provider": told[0]} if told else {}


def ask_all(names: Sequence[str], base: str) -> dict[str, dict[str, str]]:
    """What the services tell that answer within the limit, in the order of their names."""
    if not names:
        return {}
    pool = ThreadPoolExecutor(len(names))
    answers = {name: pool.submit(ask, SERVICES[name], base) for name in names}
    done, _ = wait(answers.values(), LIMIT)
    pool.shutdown(wait=False, cancel_futures=True)
    return {name: answer.result() for name, answer in answers.items() if answer in done}


def ask(service: Callable[[Get], dict[str, str]], base: str) -> dict[str, str]:
    """What one service tells; empty where it does not answer, or not as it is documented to."""
    import urllib3

    http = urllib3.PoolManager(timeout=LIMIT, retries=False)

    def get(path: str, method: str = "GET", **headers: str) -> str:
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        answer = http.request(method, base + path, headers=sent)
        if answer.status != 200:
            raise LookupError(path)
        return answer.data.decode()

    try:
        return {key: value for key, value in service(get).items() if WORD.fullmatch(value)}
    except (urllib3.exceptions.HTTPError, LookupError, ValueError, AttributeError, TypeError):
        return {}


def aws(get: Get) -> dict[str, str]:
    """AWS, by the session-token protocol only (IMDSv2)."""
    token = get("/latest/api/token", method="PUT", X_aws_ec2_metadata_token_ttl_seconds="60")

    def tell(path: str) -> str:
        return get(f"/latest/meta-data/{path}", X_aws_ec2_metadata_token=token)

    facts = {"instance_type": tell("instance-type"), "region": tell("placement/region")}
    facts["zone"] = tell("placement/availability-zone")
    facts["purchase"] = "spot" if tell("instance-life-cycle") == "spot" else "on-demand"
    return facts


def azure(get: Get) -> dict[str, str]:
    """Microsoft Azure."""
    text = get("/metadata/instance/compute?api-version=2021-02-01", Metadata="true")
    compute: dict[str, Any] = json.loads(text)
    return {
        "instance_type": compute["vmSize"],
        "region": compute.get("location", ""),
        "zone": compute.get("zone", ""),
        "purchase": "spot" if compute.get("priority") in ("Spot", "Low") else "on-demand",
    }


def gcp(get: Get) -> dict[str, str]:
    """Google Cloud. Names come as paths: ``projects/1/zones/us-central1-a``."""
    text = get("/computeMetadata/v1/instance/?recursive=true", Metadata_Flavor="Google")
    instance: dict[str, Any] = json.loads(text)
    zone = instance["zone"].rpartition("/")[2]
    scheduling = instance.get("scheduling", {})
    model = str(scheduling.get("provisioningModel", "")).upper()
    spot = model == "SPOT" or str(scheduling.get("preemptible", "")).upper() == "TRUE"
    return {
        "instance_type": instance["machineType"].rpartition("/")[2],
        "region": zone.rpartition("-")[0],
        "zone": zone,
        "purchase": "spot" if spot else "on-demand",
    }


SERVICES: dict[str, Callable[[Get], dict[str, str]]] = {"aws": aws, "azure": azure, "gcp": gcp}
