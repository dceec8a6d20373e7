"""``underdog trials`` as it is typed: data on stdout, talk on stderr, status 2 on faults."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from underdog.store import open_store
from underdog.testing.store import bare_trial, full_trial

TRIALS = "workload,offer,throughput\na,aws/eu/x.large/spot,10\na,aws/eu/y.large/spot,\n"


class Shell:
    """Runs ``underdog trials`` on a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = str(folder / "store.sqlite3")

    def __call__(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "underdog", "trials", *arguments],
            cwd=self.folder,
            env={**os.environ, "UNDERDOG_STORE": self.store, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_import_list_show_export(shell: Shell) -> None:
    (shell.folder / "t.csv").write_text(TRIALS)
    out, err = shell("import", "t.csv")
    assert out == ""
    assert "2 trials added" in err
    assert "1 without a throughput are kept as failed" in err
    out, err = shell()
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["id", "workload", "machine", "status"]
    assert "aws/eu/x.large/spot" in lines[1]
    assert "failed" in lines[2]
    id = lines[1].split()[0]
    out, _ = shell("show", id)
    assert id in out
    assert "10.00 samples/s" in out
    out, _ = shell("show", id, "--json")
    assert json.loads(out)["measurement"]["samples_per_second"]["value"] == 10
    out, err = shell("export", "out.csv")
    assert out == ""
    assert "2 trials written" in err
    assert "were there already" in shell("import", "t.csv")[1]
    summary = json.loads(shell("import", "t.csv", "--json")[0])
    assert (summary["added"], summary["unchanged"]) == (0, 2)


def test_formats(shell: Shell) -> None:
    with open_store(shell.store) as store:
        store.save(
            full_trial("w"), bare_trial('a|b <c> [bold]d[/bold] \x1b[31m\n,"', status="hung")
        )
    out, _ = shell("--json")
    assert json.loads(out)[0]["workload"] == "w"
    assert json.loads(shell("--format", "json")[0]) == json.loads(out)
    rows = list(csv.DictReader(io.StringIO(shell("--format", "csv")[0])))
    assert rows[0]["offer"] == "aws/us-east-1/g5.xlarge/on-demand"
    assert rows[0]["knob.batch"] == "64"
    assert rows[1]["workload"] == 'a|b <c> [bold]d[/bold] \x1b[31m\n,"'
    out, _ = shell("--format", "markdown")
    assert "a\\|b &lt;c>" in out
    assert {line.replace("\\|", "").count("|") for line in out.splitlines()} == {10}
    out, _ = shell()
    assert "[bold]d[/bold]" in out
    assert "\x1b[31m" not in out, "a terminal obeys no text of a record"


def test_filters(shell: Shell) -> None:
    with open_store(shell.store) as store:
        store.save(*[bare_trial(f"w{i % 2}", id=f"t{i}", status="ok") for i in range(60)])
        store.save(bare_trial("w0", id="bad", status="failed"))
    out, err = shell()
    assert len(out.splitlines()) == 51
    assert "The latest 50" in err
    out, err = shell("--limit", "60")
    assert len(out.splitlines()) == 61
    assert err == ""
    assert len(json.loads(shell("--json")[0])) == 61
    assert [t["id"] for t in json.loads(shell("--json", "--limit", "2")[0])] == ["t59", "bad"]
    assert [t["id"] for t in json.loads(shell("--json", "--status", "failed")[0])] == ["bad"]
    assert len(json.loads(shell("--json", "--workload", "w1")[0])) == 30


def test_an_empty_store(shell: Shell) -> None:
    out, err = shell()
    assert out == ""
    assert "No trials" in err
    assert shell("--json")[0] == "[]\n"
    assert shell("--format", "csv")[0] == "workload\n"


def test_the_store_before_or_after_the_sub_command(shell: Shell) -> None:
    (shell.folder / "t.csv").write_text(TRIALS)
    shell("--store", "one.db", "import", "t.csv")
    shell("import", "t.csv", "--store", "two.db")
    for name in ("one.db", "two.db"):
        assert len(json.loads(shell("--store", name, "--json")[0])) == 2
    assert not Path(shell.store).exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["imprt", "t.csv"], "Did you mean 'import'?"),
        (["--status", "okay"], "Did you mean 'ok'?"),
        (["--limit", "0"], "--limit"),
        (["--format", "xml"], "--format"),
        (["show", "absent"], "There is no trial 'absent'"),
        (["import", "absent.csv"], "'absent.csv' cannot be read: No such file"),
        (["import", "bad.csv"], "row 2, throughput: '-1'"),
        (["export", "out.xml"], "tells no format; these do: .csv, .json"),
        (["--store", "bad.csv"], "it is not a SQLite database"),
        (["--store", "mysql://host/db"], "There is no kind of store 'mysql'"),
    ],
)
def test_faults_end_with_status_2(arguments: list[str], told: str, shell: Shell) -> None:
    bad = shell.folder / "bad.csv"
    bad.write_text("workload,offer,throughput\na,o,-1\n" + "a,o,1\n" * 200)
    before = bad.read_bytes()
    out, err = shell(*arguments, status=2)
    assert out == ""
    assert told in err
    assert bad.read_bytes() == before


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_the_table_cuts_no_figure(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    from underdog.report.trials import trials_table
    from underdog.testing.store import full_trial

    trial = full_trial("a-workload-with-a-long-name/train" * 3)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(trials_table([trial], width))
    lines = console.export_text().splitlines()
    assert len([line for line in lines if line.strip()]) == 2  # the head and one line
    assert trial.id in lines[-1]
    assert "measured" in lines[-1]
