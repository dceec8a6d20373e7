"""Weights & Biases, offline: a folder that ``wandb sync`` uploads when its owner wants that."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from underdog.errors import MissingPackageError
from underdog.model import Trial
from underdog.progress import track
from underdog.report.exporters import WRITTEN
from underdog.report.exporters._flat import TEXTS, plain, row_of

FOLDER = True


def export(trials: Sequence[Trial], target: Path) -> None:
    """Write one offline run for each trial; nothing is sent. The project is the workload."""
    wandb = _package()
    settings = wandb.Settings(
        mode="offline", silent=True, console="off", x_disable_stats=True, x_disable_meta=True
    )
    for trial in track(trials, WRITTEN, every=1):
        id = hashlib.sha256(trial.id.encode(errors="surrogatepass")).hexdigest()[:16]
        if any((target / "wandb").glob(f"offline-run-*-{id}")):
            continue  # an earlier export wrote it
        row = row_of(trial)
        config = {k: v for k, v in row.items() if k in TEXTS or k.startswith("knob_")}
        run = wandb.init(
            dir=str(target),
            id=id,
            project=_project(trial.workload),
            name=plain(f"{trial.workload} on {row['offer']}"),
            config={name: value for name, value in config.items() if value is not None},
            settings=settings,
        )
        for name, value in row.items():
            if name not in config and value is not None:
                run.summary[name] = value
        run.finish(exit_code=0 if trial.status in ("ok", "stopped") else 1)


def _package() -> Any:
    try:
        import wandb
    except ImportError:
        raise MissingPackageError("Export to Weights & Biases", "wandb", "wandb") from None
    return wandb


def _project(workload: str) -> str:
    """A name that W&B takes: none of ``/\\#?%:`` and at most 128 characters."""
    kept = "".join("-" if c in "/\\#?%:" or not c.isprintable() else c for c in workload)
    return plain(kept)[:128].strip() or "workload"
