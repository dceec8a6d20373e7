"""``underdog attempts`` as it is typed: data on stdout, talk on stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from underdog.cli.group import COMMANDS
from underdog.core.attempts import seconds_of


@pytest.fixture
def shell(tmp_path: Path) -> object:
    from underdog.cli.attempts import command

    def run(*arguments: str) -> Result:
        store = str(tmp_path / "store.sqlite3")
        return CliRunner().invoke(command, arguments, env={"UNDERDOG_STORE": store})

    return run


def test_add_list_and_import(shell, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert "attempts" in COMMANDS
    empty = shell()
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "underdog attempts import FILE" in empty.stderr
    refused = shell("add", "aws/us-east-1/g5.xlarge/spot", "--refused", "ZoneUnavailable: sold out")
    assert refused.stdout == ""
    assert "Kept: no capacity. Next: try another zone" in refused.stderr
    got = shell(
        "add", "aws/us-east-1/g5.xlarge/spot", "--zone", "us-east-1a", "--at", "2026-11-01T00:00",
        "--waited", "90s", "--held", "2h", "--interrupted", "--json",
    )  # fmt: skip
    kept = json.loads(got.stdout)
    assert (kept["at"], kept["held"], kept["interrupted"]) == (
        seconds_of("2026-11-01T00:00Z"), 7200.0, True,
    )  # fmt: skip
    table = shell().stdout
    assert "no capacity" in table
    assert "got, taken away" in table
    listed = json.loads(shell("--json", "--type", "g5.xlarge").stdout)
    assert [one["got"] for one in listed] == [False, True]
    path = tmp_path / "more.csv"
    path.write_text("offer,at,got\naws/us-east-1/g5.xlarge/spot,2026-11-02,true\n")
    assert "1 attempts added from more.csv" in shell("import", str(path)).stderr
    assert json.loads(shell("import", str(path), "--json").stdout)["unchanged"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--refused", "no", "--held", "5m"), "never held"),
        (("--interrupted",), "--held"),
        (("--at", "soon"), "'soon' is no moment"),
    ],
)
def test_what_contradicts_itself(shell, arguments: tuple[str, ...], said: str) -> None:  # type: ignore[no-untyped-def]
    done = shell("add", "aws/us-east-1/g5.xlarge/spot", *arguments)
    assert done.exit_code != 0
    assert said in done.output + str(done.exception)
