"""Trials in the formats of other tools, each read back by that tool's own reader."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from underdog.errors import UsageError
from underdog.model import Trial
from underdog.report import exporters
from underdog.testing.exporter import FAILED, MEASURED, ExporterChecks, odd_trials
from underdog.verbs.trials import export_trials, import_trials, trials

FILES = {
    "json": ".json",
    "csv": ".csv",
    "markdown": ".md",
    "parquet": ".parquet",
    "prometheus": ".prom",
    "openmetrics": ".om",
}
FOLDERS = ("mlflow", "wandb")


def count(form: str, target: Path) -> int | None:
    """The trials in a target; of metrics only the latest of each label are kept, so None."""
    if form == "json":
        return len(json.loads(target.read_text()))
    if form == "csv":
        with target.open(newline="") as file:
            return len(list(csv.DictReader(file)))
    if form == "markdown":
        return len(target.read_text().splitlines()) - 2
    if form == "parquet":
        return int(duckdb.sql(f"SELECT count(*) FROM '{target}'").fetchall()[0][0])
    if form == "mlflow":
        return len(runs(target))
    if form == "wandb":
        return len(list((target / "wandb").glob("offline-run-*")))
    assert metrics(form, target) is not None
    return None


def metrics(form: str, target: Path) -> dict[str, list[Any]]:
    """The samples of each metric, by the format's own parser."""
    if form == "openmetrics":
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
    else:
        from prometheus_client.parser import text_string_to_metric_families as parse
    return {family.name: family.samples for family in parse(target.read_bytes().decode())}


def runs(target: Path) -> list[Any]:
    """All runs of an MLflow folder."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=target.resolve().as_uri())
    experiments = [found.experiment_id for found in client.search_experiments()]
    return list(client.search_runs(experiments)) if experiments else []


@pytest.mark.parametrize("check", ExporterChecks.names())
@pytest.mark.parametrize("form", FILES)
def test_file_formats_keep_their_promises(form: str, check: str, tmp_path: Path) -> None:
    def export(found: Any, target: Path) -> None:
        exporters.export(found, target, form)

    target = tmp_path / f"trials{FILES[form]}"
    getattr(ExporterChecks(export, lambda path: count(form, path), target), check)()
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.slow
@pytest.mark.parametrize("form", FOLDERS)
def test_folder_formats_keep_their_promises(form: str, tmp_path: Path) -> None:
    pytest.importorskip(form)

    def export(found: Any, target: Path) -> None:
        exporters.export(found, target, form)

    for name in ExporterChecks.names():
        checks = ExporterChecks(export, lambda path: count(form, path), tmp_path / name)
        checks.odd = checks.odd[:: 5 if form == "wandb" else 1]  # a second for each of its runs
        getattr(checks, name)()


def test_parquet_has_types_and_knows_what_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    exporters.export([MEASURED, FAILED], path)
    found = duckdb.sql(
        "SELECT samples_per_second, samples_per_dollar, knob_batch, phase_forward, price_per_hour, "
        f"usage_accelerator_share FROM '{path}' ORDER BY started_at"
    )
    assert found.types[0] == "DOUBLE"
    assert found.fetchall() == [
        (100.0, 360_000.0, "32", 0.4, 1.0, None),
        (None, None, None, None, None, None),
    ]


@pytest.mark.parametrize("form", ["prometheus", "openmetrics"])
def test_a_scraper_sees_the_latest_trial_that_was_measured(form: str, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    assert MEASURED.measurement is not None
    rate = dataclasses.replace(MEASURED.measurement.samples_per_second, value=50.0)  # type: ignore[type-var]
    slower = dataclasses.replace(MEASURED.measurement, samples_per_second=rate)
    earlier = dataclasses.replace(
        MEASURED, id="e", started_at="2025-01-01T00:00:00+00:00", measurement=slower
    )
    path = tmp_path / "t.prom"
    exporters.export([MEASURED, earlier, FAILED], path, form)
    (sample,) = metrics(form, path)["underdog_samples_per_second"]
    assert sample.value == 100.0
    assert sample.labels["workload"] == "resnet"
    assert sample.labels["offer"] == "aws/us-east-1/g5.xlarge/on-demand"
    (started,) = metrics(form, path)["underdog_trial_start_time_seconds"]
    assert started.value == 1767323045.0


@pytest.mark.slow
def test_an_mlflow_run_holds_what_was_measured(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    exporters.export([MEASURED, FAILED], tmp_path / "runs", "mlflow")
    ok, failed = sorted(runs(tmp_path / "runs"), key=lambda run: run.info.start_time)
    assert ok.info.status == "FINISHED"
    assert ok.data.params == {"batch": "32"}
    assert ok.data.metrics["samples_per_second"] == 100.0
    assert ok.data.tags["underdog.offer"] == "aws/us-east-1/g5.xlarge/on-demand"
    assert failed.info.status == "FAILED"
    assert "samples_per_second" not in failed.data.metrics


def test_a_spreadsheet_computes_nothing_and_import_takes_it_back(tmp_path: Path) -> None:
    odd = [t for t in odd_trials() if t.workload[:1] in "=-@"]
    assert len(odd) == 3
    path = tmp_path / "t.csv"
    exporters.export(odd, path)
    with path.open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    dangerous = [c for c in cells if c[:1] in ("=", "+", "-", "@", "\t", "\r") and not number(c)]
    assert dangerous == []
    import_trials(path, store=str(tmp_path / "s.db"))
    assert {t.workload for t in trials(str(tmp_path / "s.db"))} == {t.workload for t in odd}


def number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"tells no format; these do: \.csv, \.json"):
        exporters.export([], tmp_path / "trials.xlsx")
    with pytest.raises(UsageError, match="Did you mean 'parquet'"):
        exporters.export([], tmp_path / "x", "parqet")
    with pytest.raises(UsageError, match="cannot be written"):
        exporters.export([], tmp_path / "no folder" / "x.csv")


def test_a_fault_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.md"
    path.write_text("old")

    def full(found: list[Trial], target: Path) -> None:
        target.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("underdog.report.exporters.markdown.export", full)
    with pytest.raises(UsageError, match="No space left"):
        exporters.export([MEASURED], path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_exports_by_ending_and_by_name(tmp_path: Path) -> None:
    url = str(tmp_path / "s.db")
    source = tmp_path / "t.json"
    exporters.export([MEASURED, FAILED], source)
    import_trials(source, store=url)
    assert export_trials(tmp_path / "t.parquet", url) == 2
    assert export_trials(tmp_path / "t.txt", url, form="markdown") == 2
    assert count("parquet", tmp_path / "t.parquet") == count("markdown", tmp_path / "t.txt") == 2


def test_a_full_disk_is_told_in_the_words_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from underdog.report.exporters import parquet

    said = 'IO Error: {"exception_message":"Could not write file","errno":"28"}'
    assert parquet._as_os_error(said).strerror == "No space left on device"
    assert str(parquet._as_os_error("IO Error: something\nelse")) == "IO Error: something else"
    monkeypatch.setattr(parquet, "_literal", lambda text: "'/proc/none/x.parquet'")
    with pytest.raises(UsageError, match="cannot be written"):
        exporters.export(odd_trials(), tmp_path / "x.parquet")
