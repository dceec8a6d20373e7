"""MLflow: one run for each trial, in an experiment for each workload."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from underdog.errors import MissingPackageError
from underdog.model import Trial
from underdog.progress import track
from underdog.report.exporters import WRITTEN
from underdog.report.exporters._flat import NUMBERS, TEXTS, plain, row_of

FOLDER = True
TAG = "underdog.trial"  # holds the trial's id: a second export finds its run by it
_LONGEST = 5000  # characters that MLflow takes as the value of a tag
_ENDED = {"ok": "FINISHED", "stopped": "FINISHED", "interrupted": "KILLED", "running": "RUNNING"}


def export(trials: Sequence[Trial], target: Path) -> None:
    """Add the trials to the tracking store of a folder; open it with ``mlflow ui``."""
    client = _client(target)
    experiments = {found.name: found.experiment_id for found in client.search_experiments()}
    there = _exported(client, list(experiments.values()))
    for trial in track(trials, WRITTEN, every=1):
        if _text(trial.id) in there:
            continue
        name = _experiment(trial.workload)
        if name not in experiments:
            experiments[name] = client.create_experiment(name)
        _export_one(client, experiments[name], trial)


def _exported(client: Any, experiments: list[str]) -> set[str]:
    """The ids of the trials that are there already."""
    found: set[str] = set()
    token = None
    while experiments:
        page = client.search_runs(experiments, page_token=token)
        found |= {run.data.tags[TAG] for run in page if TAG in run.data.tags}
        token = page.token
        if not token:
            break
    return found


def _client(target: Path) -> Any:
    try:
        # a folder needs no server and no database; MLflow asks who uses one to say so
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise MissingPackageError("Export to MLflow", "mlflow-skinny", "mlflow") from None
    return MlflowClient(tracking_uri=target.resolve().as_uri())


def _export_one(client: Any, experiment: str, trial: Trial) -> None:
    row = row_of(trial)
    tags = {TAG: _text(trial.id)}
    tags |= {f"underdog.{name}": _text(row[name]) for name in TEXTS if row[name] is not None}
    name = f"{trial.workload} on {row['offer']}"
    began, ended = _milliseconds(trial.started_at), _milliseconds(trial.ended_at)
    run = client.create_run(experiment, start_time=began, tags=tags, run_name=_text(name))
    id = run.info.run_id
    for key, value in trial.knobs.items():
        client.log_param(id, _key(key), _text(value))
    for key, number in row.items():
        counts = key in NUMBERS or key.startswith(("phase_", "usage_", "peak_memory_gib_"))
        if counts and isinstance(number, int | float):
            client.log_metric(id, _key(key), float(number), timestamp=began or 0)
    client.set_terminated(id, status=_ENDED.get(trial.status, "FAILED"), end_time=ended or began)


def _text(value: object) -> str:
    return plain(str(value))[:_LONGEST]


def _experiment(workload: str) -> str:
    """A name that MLflow's own search does not take for the end of its text."""
    kept = "".join(c if c.isprintable() and c not in "'\";`\\" else "_" for c in _text(workload))
    return kept[:250].strip() or "workload"


def _key(name: str) -> str:
    """A name as MLflow takes it: letters, digits and ``_-. /``."""
    kept = "".join(c if (c.isalnum() and c.isascii()) or c in "_-. " else "_" for c in name)
    return kept[:250].strip(". ") or "_"


def _milliseconds(moment: str | None) -> int | None:
    try:
        return int(datetime.fromisoformat(moment or "").timestamp() * 1000)
    except ValueError:
        return None
