"""Write docs/reference/cli.md from the commands themselves. The tests hold the two together."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import click

from underdog.cli import COMMANDS

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"

INTRODUCTION = """\
# Commands

Data goes to stdout, talk to stderr. Exit status: 0 done, 1 the answer is no, 2 could not do it,
130 stopped by Ctrl-C. Everything after `--` is passed on untouched. `UNDERDOG_STORE` says where the
store lives where `--store` does not. `NO_COLOR` is honoured. `--debug` before the command shows the
traceback of an error.
"""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, sub-commands after their group."""
    for name in COMMANDS:
        command = importlib.import_module(f"underdog.cli.{name}").command
        yield name, command
        for sub, child in sorted(getattr(command, "commands", {}).items()):
            yield f"{name} {sub}", child


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"underdog {name}")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"## underdog {name}", "", "\n".join((command.help or "").splitlines()), ""]
    lines += [f"    {usage}", ""]
    options = [p for p in command.params if isinstance(p, click.Option)]
    if options:
        lines += ["| option | meaning |", "|---|---|"]
    for option in options:
        record = option.get_help_record(context)
        if record is not None:
            lines.append(f"| `{cell(record[0])}` | {cell(record[1])} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(section(name, command) for name, command in commands())])


if __name__ == "__main__":
    PAGE.write_text(page())
