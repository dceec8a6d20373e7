"""The command to measure: its name as a workload, and its knobs."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from underdog.errors import UsageError, did_you_mean

# {{name}} stands for a literal {name}, as in Python's own formatting
PLACEHOLDER = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")
SCRIPT = re.compile(r"[^\s;&|'\"]+\.(?:py|sh)\b")


COMMON_NAMES = {"__main__", "finetune", "main", "pretrain", "run", "train", "trainer", "training"}


def workload_name(command: Sequence[str]) -> str:
    """The script's file name without its ending, else the module's name, else the program's.

    A name that many projects use has its folder before it, so that two of them are not taken for
    one workload: ``nanoGPT/train``.
    """
    for word in command[1:]:
        if found := SCRIPT.search(word):
            script = Path(found.group())
            if script.stem in COMMON_NAMES and script.is_file():
                return f"{script.resolve().parent.name}/{script.stem}".lstrip("/")
            return script.stem
    for flag, module in itertools.pairwise(command):
        if flag == "-m" and module not in ("torch.distributed.run", "torch.distributed.launch"):
            return module
    name = Path(command[0]).name if command else ""
    return Path(name).stem or "workload"


def script_folder(command: Sequence[str]) -> Path:
    """The folder of the script, where it is named; else the working folder."""
    for word in command:
        found = SCRIPT.search(word)
        if found and os.path.isfile(found.group()):
            return Path(found.group()).resolve().parent
    return Path.cwd()


def parse_knobs(texts: Sequence[str]) -> dict[str, list[str]]:
    """``name=a,b,c`` each, to the values of each name.

    Raises:
        UsageError: one has no name, no value, or a name that was given before.
    """
    knobs: dict[str, list[str]] = {}
    problems = []
    for text in texts:
        name, equals, rest = text.partition("=")
        values = list(dict.fromkeys(value.strip() for value in rest.split(",")))
        if equals and all(values) and name.replace("-", "_").isidentifier() and "-" in name:
            problems.append(f"'{name}' is no name of a knob: write {name.replace('-', '_')}.")
        elif not equals or not name.isidentifier() or not all(values):
            problems.append(f"'{text}' is not a knob.")
        elif name in knobs:
            problems.append(f"The knob '{name}' is given twice.")
        else:
            knobs[name] = values
    if problems:
        raise UsageError("\n".join(problems), "Write it like --knob batch=8,16,32")
    return knobs


def check_knobs(command: Sequence[str], knobs: Mapping[str, Sequence[str]]) -> None:
    """Say which knobs and placeholders have no counterpart.

    Raises:
        UsageError: a knob that the command does not name, or a ``{name}`` that is no knob.
    """
    if not knobs:
        return
    named = {m.group(2) for word in command for m in PLACEHOLDER.finditer(word) if m.group(2)}
    problems = [
        f"The command names '{{{name}}}', which is no knob. {did_you_mean(name, knobs)}"
        for name in sorted(named - set(knobs))
    ]
    problems += [
        f"The command does not name the knob '{name}': write {{{name}}} where its value belongs."
        for name in knobs
        if name not in named
    ]
    problems += [f"The knob '{name}' has no values." for name in knobs if not knobs[name]]
    if problems:
        raise UsageError("\n".join(problems))


def combinations(
    command: Sequence[str], knobs: Mapping[str, Sequence[str]]
) -> list[tuple[list[str], dict[str, str]]]:
    """Each command to run with the values of its knobs, the first knob turning slowest."""
    found = []
    for values in itertools.product(*knobs.values()):
        chosen = dict(zip(knobs, (str(value) for value in values), strict=True))
        found.append(([filled(word, chosen) for word in command] if knobs else [*command], chosen))
    return found


def filled(word: str, values: Mapping[str, str]) -> str:
    """One word of the command with the knobs' values in it."""
    return PLACEHOLDER.sub(
        lambda m: "{" + m.group(1) + "}" if m.group(1) else values[m.group(2)], word
    )
