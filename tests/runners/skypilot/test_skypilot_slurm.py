"""End to end: a real SkyPilot, its API server, and a real Slurm cluster that it reaches by ssh."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import slurm_cluster
from carried_jobs import LONG, SCRIPT, SHORT, made, until
from carried_jobs import trial as collected
from sky_site import NAME, PYTHON, USER, SkySite, missing, with_skypilot

from underdog.errors import RefusedError
from underdog.model import Estimate, Offer, Price
from underdog.runners import Handle, Job, Runner

LIMIT = 600  # seconds for what takes one on a machine that has nothing else to do

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3 * LIMIT),
    pytest.mark.filterwarnings("ignore"),  # SkyPilot's
    with_skypilot,
]


@pytest.fixture
def site(_site: SkySite) -> Iterator[SkySite]:
    yield _site
    _site.ask("scancel", f"--user={USER}")  # of a test that failed


@pytest.fixture(scope="module")
def _site() -> Iterator[SkySite]:
    if (lacks := missing()) is not None:
        pytest.skip(lacks)
    with (
        tempfile.TemporaryDirectory(prefix="underdog-sky-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        found = SkySite(Path(folder))
        patch.setenv("HOME", str(found.home))
        patch.setenv("XDG_DATA_HOME", str(found.folder / "data"))
        patch.setenv("SKYPILOT_DISABLE_USAGE_COLLECTION", "1")
        # another server may be that of whoever runs the tests
        patch.setenv("SKYPILOT_API_SERVER_LOCAL_PORT", str(slurm_cluster.free_ports(1)[0]))
        sky = [sys.executable, "-W", "ignore", "-m", "sky.cli"]
        program = shutil.which("sky", path=str(Path(sys.executable).parent))
        sky = [program] if program else sky
        try:
            found.start()
            subprocess.run([*sky, "api", "start"], check=True, timeout=LIMIT)
            yield found
        finally:
            subprocess.run([*sky, "api", "stop"], check=False, timeout=LIMIT)
            found.stop()


def job(site: SkySite, steps: int = SHORT, **more: Any) -> Job:
    """One of the jobs of ``carried_jobs``, with a Python that the user of the nodes may use."""
    script = site.jobs / "train.py"
    script.write_text(SCRIPT)
    offer = Offer(
        provider="mine", region="here", instance_type="box", price=Price(per_hour=1.0, source="me")
    )
    given: dict[str, Any] = {
        "workload": "tiny",
        "candidate": "box",
        "offer": offer,
        "command": (str(PYTHON), str(script), str(site.jobs / "starts"), str(steps)),
        "price": 1.0,
        "seconds": 60.0,
        "pattern": r"samples=(?P<samples>\d+)",
        "target": {"infra": f"slurm/{NAME}", "cpus": 1, "python": str(site.python)},
    }
    return Job(**(given | more))


def ended(runner: Runner, handle: Handle) -> list[str]:
    """Wait for the end; what it was waiting for until then."""
    told: list[str] = []

    def over() -> bool:
        state = runner.status(handle)
        if state.waiting is not None:
            told.append(state.waiting)
        return state.ended

    until(over, LIMIT)
    return told


def rate(found: Any) -> Estimate:
    assert found.measurement is not None
    assert isinstance(found.measurement.samples_per_second, Estimate)
    return found.measurement.samples_per_second


def test_a_trial_is_measured_there_and_leaves_nothing(site: SkySite, tmp_path: Path) -> None:
    runner = made("skypilot", tmp_path)
    asked = job(site, LONG, seconds=8.0, precision=0.001, id="T1")
    handle = runner.submit(runner.render(asked))
    assert made("skypilot", tmp_path).submit(runner.render(asked)) == handle  # not started twice
    other = made("skypilot", tmp_path)
    until(lambda: (look := other.status(handle).look) is not None and look.rate, LIMIT)
    held = site.ask("squeue", "--noheader", "--format=%l", f"--user={USER}").split()
    assert held == ["33:00"]  # (900 + 8 + 240 + 30) s, 3 min to collect, 10 min to provide
    ended(other, handle)
    found = collected(other, handle)
    assert (found.status, found.workload) == ("ok", "tiny")
    until(lambda: site.queued() == "", LIMIT)  # jobs that end are listed for seconds
    assert collected(runner, handle) == found
    assert rate(found).n > 1


def test_a_job_is_cancelled_by_whoever_has_its_handle(site: SkySite, tmp_path: Path) -> None:
    first = made("skypilot", tmp_path)
    handle = first.submit(first.render(job(site, LONG)))
    del first
    runner = made("skypilot", tmp_path)
    until(lambda: (look := runner.status(handle).look) is not None and look.rate, LIMIT)
    for _ in range(2):
        runner.cancel(handle)
    ended(runner, handle)
    found = collected(runner, handle)
    assert found.status == "interrupted"
    assert rate(found).n > 1
    runner.cancel(handle)
    until(lambda: site.queued() == "", LIMIT)


def test_a_full_cluster_is_no_capacity_in_its_own_words(site: SkySite, tmp_path: Path) -> None:
    sleep = ["sbatch", "--parsable", "--nodes=2", "--exclusive", "--output=/dev/null"]
    busy = site.ask(*sleep, "--wrap=sleep 600").strip()
    state = ("squeue", "--noheader", "--format=%T", f"--job={busy}")
    until(lambda: "RUNNING" in site.ask(*state), LIMIT)
    runner = made("skypilot", tmp_path)
    handle = runner.submit(runner.render(job(site)))
    told = ended(runner, handle)
    assert any("Launching on Slurm" in words for words in told)
    with pytest.raises(RefusedError, match="Failed to acquire resources in main") as caught:
        runner.collect(handle)
    assert caught.value.kind == "no_capacity"
    site.ask("scancel", busy)
    until(lambda: site.queued() == "", LIMIT)


def test_a_job_whose_allocation_is_ended_there_is_lost_and_nothing_is_left(
    site: SkySite, tmp_path: Path
) -> None:
    runner = made("skypilot", tmp_path)
    handle = runner.submit(runner.render(job(site, LONG)))
    until(lambda: (look := runner.status(handle).look) is not None and look.rate, LIMIT)
    site.ask("scancel", "--full", f"--user={USER}")
    ended(runner, handle)
    with pytest.raises(Exception, match="is lost"):
        runner.collect(handle)
    from underdog.runners._skyclient import Client

    assert Client().record(json.loads(handle)["cluster"]) is None
    until(lambda: site.queued() == "", LIMIT)
