"""The command line: one thin file per verb. ``underdog --help`` loads none of them, nor click."""

from __future__ import annotations

import sys

from underdog import __version__

# command -> the line that --help shows; the module of the same name is loaded when it runs
COMMANDS = {
    "measure": "Run a training script unchanged and measure it.",
    "choose": "Rank the offers for a measured workload.",
    "explore": "Find the best offer in few and cheap tests.",
    "run": "Run a workload to its end on another machine.",
    "show": "Show a study, a decision, a trial or a workload.",
    "report": "Write a report, or one of its charts, to a file.",
    "serve": "Look at the store in a browser, while it happens.",
    "check": "Fail where a workload has become slower or dearer.",
    "watch": "Say whether the stored decisions still stand.",
    "offers": "List the offers of the catalog.",
    "catalog": "Refresh, check and compare the offers.",
    "support": "List what reaches which accelerator.",
    "attempts": "List, add and import attempts to get machines.",
    "trials": "List, show, import, export and recover trials.",
}


def help_text() -> str:
    """What ``underdog --help`` prints."""
    commands = "\n".join(f"  {name:<9} {text}" for name, text in COMMANDS.items())
    return f"""\
Usage: underdog [OPTIONS] COMMAND [ARGS]...

  On which machine should this deep-learning workload run? Measure it, then choose:

    underdog measure -- python train.py
    underdog choose

Commands:
{commands}

Options:
  --version   Show the version and exit.
  --debug     Show the traceback of an error.
  -h, --help  Show this message and exit; also after a command."""


def main(argv: list[str] | None = None) -> None:
    """Entry point. Exit status: 0 done, 1 the answer is no, 2 could not do it, 130 Ctrl-C."""
    args = sys.argv[1:] if argv is None else argv
    if args in ([], ["-h"], ["--help"]):
        print(help_text())
    elif args == ["--version"]:
        print(f"underdog {__version__}")
    else:
        from underdog.cli.group import run  # click costs more than all else that --help needs

        sys.exit(run(args))
