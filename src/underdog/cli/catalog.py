"""``underdog catalog``: refresh, check and compare the offers; list the snapshots."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from underdog.cli.common import FRACTION, Group, console, json_option, print_json
from underdog.cli.progress import Progress, bars
from underdog.progress import telling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from underdog.catalog.quality import Finding
    from underdog.catalog.refresh import Outcome, Refreshed
    from underdog.verbs.catalog import Plan


@click.group("catalog", cls=Group, short_help="Refresh, check and compare the offers.")
def command() -> None:
    """Keep the list of offers fresh and true.

    Every refresh adds a snapshot to the archive, so that a decision can be replayed with the prices
    of its day: underdog choose --as-of 2026-11-30.
    """


@command.command("refresh", short_help="Fetch offers and keep them as a new snapshot.")
@click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="NAME",
    help="Ask this one; may be given several times. skypilot:lambda, or just lambda, is one cloud "
    "of SkyPilot's catalog. [default: all that can be asked from here]",
)
@click.option("--region", "regions", multiple=True, metavar="NAME", help="Only this region.")
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A folder of SkyPilot's catalog, or a TOML file of prices of your own.",
)
@click.option(
    "--accept",
    multiple=True,
    metavar="NAME",
    help="Take this seller's answer although the rules reject it as a whole: the world did change.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be asked of whom, and ask nothing.")
@click.option(
    "--record",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Keep the answers in this folder too.",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Take the answers from a folder where they were recorded; nothing is asked.",
)
@json_option
def refresh(providers: tuple[str, ...], dry_run: bool, as_json: bool, **given: Any) -> int:
    """Fetch offers, check them, and keep them as a new snapshot.

    A provider that fails, or whose answer the quality rules reject, keeps the offers that it had.
    Exit status 1: some did; 2: all did.
    """
    from underdog.verbs import catalog as verb

    if dry_run:
        _print_plan(verb.plan(providers, **given), as_json)
        return 0
    with Progress() as progress, telling(progress.tell):
        found = verb.refresh(providers, **given, progress=progress.tell)
    if as_json:
        print_json(
            {
                "outcomes": found.outcomes,
                "snapshot": found.entry and found.entry.hash,
                "path": found.entry and str(found.entry.path),
                "findings": len(found.findings),
            }
        )
    else:
        _print_refreshed(found)
    for one in found.outcomes:
        if one.reason is not None:
            click.echo(_why(one), err=True)
    return _status(found)


@command.command("check", short_help="List what the quality rules find.")
@click.argument("snapshot", required=False)
@json_option
def check(snapshot: str | None, as_json: bool) -> int:
    """List what the quality rules find in a SNAPSHOT, and what its sources hold that is no offer.

    SNAPSHOT is a day, the first letters of a hash, a path, or 'bundled'; the newest by default.
    Exit status 1: the rules found an offer that must not stand, or a source to reject. A caveat is
    told by choose beside its offer.
    """
    from underdog.report import catalog as report
    from underdog.verbs import catalog as verb

    with bars():
        found = verb.check(snapshot)
    findings = [{**asdict(one), "explained": verb.explain(one)} for one in found.findings]
    if as_json:
        print_json({"findings": findings, "left_out": found.left_out})
    else:
        for line in report.findings(findings):
            click.echo(line)
        if found.left_out:
            click.echo("Left out:")
        for line in report.left_out(found.left_out):
            click.echo(line)
    click.echo(
        f"{len(found.findings):,} findings{_severity(found.findings)} in "
        f"{found.snapshot.rows:,} offers of "
        f"{found.snapshot.date}, {found.snapshot.hash[:12]}",
        err=True,
    )
    # a caveat stays with its offer and is told there: only what must not stand is a "no"
    return int(any(one.severity != "caveat" for one in found.findings))


def _severity(findings: Sequence[Finding]) -> str:
    severe = sum(one.severity != "caveat" for one in findings)
    if not findings or severe:
        return f", {severe:,} of them severe" if severe else ""
    return ", all of them caveats, which choose tells beside an offer,"


@command.command("diff", short_help="List what changed between two snapshots.")
@click.argument("old")
@click.argument("new", required=False)
@click.option("--over", type=FRACTION, metavar="SHARE", help="Only prices that moved more: 5%.")
@json_option
def diff(old: str, new: str | None, over: float | None, as_json: bool) -> None:
    """List new and gone types, price moves and changed figures from OLD to NEW.

    Each is a day, the first letters of a hash, a path, or 'bundled'; NEW is the newest by default.
    """
    from underdog.report import catalog as report
    from underdog.verbs import catalog as verb

    with bars():
        found = verb.diff(old, new, over or 0.0)
    if as_json:
        print_json(found)
        return
    for line in report.difference(asdict(found)):
        click.echo(line)


@command.command("list", short_help="List the snapshots that there are.")
@json_option
def list_(as_json: bool) -> None:
    """List the snapshots that there are, the oldest first."""
    from underdog.report import catalog as report
    from underdog.verbs import catalog as verb

    found = [{**asdict(entry), "path": str(entry.path)} for entry in verb.snapshots()]
    if as_json:
        print_json(found)
        return
    console().print(report.snapshots(found, verb.pick().hash))


def _print_plan(plan: Plan, as_json: bool) -> None:
    if as_json:
        print_json(plan)
        return
    for provider, asks in plan.asks.items():
        for line in asks:
            click.echo(f"{provider}: {line}")
    for one in plan.skipped:
        click.echo(_why(one), err=True)


def _print_refreshed(found: Refreshed) -> None:
    for one in found.outcomes:
        if one.state == "refreshed":
            click.echo(
                f"{one.provider}: {one.offers:,} offers, {one.left_out:,} rows left out, "
                f"{one.quarantined:,} quarantined, {one.doubted:,} with a caveat"
            )
    if found.entry is not None:
        click.echo(f"snapshot {found.entry.hash[:12]}, {found.entry.rows:,} offers")


def _why(one: Outcome) -> str:
    kept = {"kept": "its offers of before stay: ", "skipped": "skipped: "}.get(one.state, "")
    from underdog.report.measurement import shown

    hint = f"\n  {one.hint}" if one.hint else ""
    return shown(f"{one.provider}: {kept}{one.reason}{hint}", keep_lines=True)


def _status(found: Refreshed) -> int:
    states = {one.state for one in found.outcomes}
    if "kept" not in states:
        return 0
    return 1 if "refreshed" in states else 2
