"""Several jobs of Slurm at once: those that ask for the same are the tasks of one array.

Each task is a trial of its own, with a folder, a handle and limits as a job that stands alone.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path

from underdog.errors import RunnerError
from underdog.runners import Handle, Job, Request
from underdog.runners import _slurm_job as one
from underdog.runners._remote import SCRIPT, target_of
from underdog.runners._slurm_job import Target

NAME = "slurm"


def render_all(jobs: Sequence[Job], alone: Sequence[Request]) -> list[Request]:
    """What ``submit_all`` would submit, each job's part in its own request; nothing happens.

    Args:
        alone: the same jobs as they are submitted one by one.
    """
    found = list(alone)
    for places in _alike(jobs):
        if len(places) == 1:
            continue
        group = [jobs[k] for k in places]
        array = _array(group)
        for task, k in enumerate(places):
            path = one.folder_of(jobs[k], array.target) / SCRIPT
            lines = [f"# task {task} of the array {array.name}, {path}:"]
            lines += one.script(jobs[k], array.target).splitlines()
            if task == 0:
                begin = shlex.join(["sbatch", "--parsable", *array.options])
                lines = [begin, *array.text.splitlines(), *lines]
            found[k] = dataclasses.replace(found[k], lines=tuple(lines))
    return found


def submit_all(requests: Sequence[Request]) -> list[Handle | RunnerError]:
    """Submit jobs, those of one shape as one array; of each the handle, or why there is none."""
    jobs = [one.named(request.job) for request in requests]
    found: dict[int, Handle | RunnerError] = {}
    for places in _alike(jobs):
        target = target_of(jobs[places[0]], Target, NAME)
        try:
            known = {k: one.before(one.folder_of(jobs[k], target)) for k in places}
            new = [k for k in places if known[k] is None]
            handles = dict(zip(new, _submit([jobs[k] for k in new], target), strict=True))
        except RunnerError as error:
            found |= dict.fromkeys(places, error)
        else:
            found |= {k: known[k] or handles[k] for k in places}
    return [found[k] for k in range(len(jobs))]


def _submit(jobs: Sequence[Job], target: Target) -> list[Handle]:
    if not jobs:
        return []
    if len(jobs) == 1:
        return [submit_one(jobs[0], target)]
    array = _array(jobs)
    for task, (job, folder) in enumerate(zip(jobs, array.folders, strict=True)):
        one.prepare(job, target, folder)
        (folder / one.ARRAY).write_text(f"{array.name} {task}")
    number = one.submitted(array.name, array.options, array.text)
    return [
        one.handle_of(f"{number}_{task}", folder, array.name)
        for task, folder in enumerate(array.folders)
    ]


def submit_one(job: Job, target: Target) -> Handle:
    """Submit a job that stands alone."""
    folder = one.folder_of(job, target)
    one.prepare(job, target, folder)
    asked = one.options(job, target, folder.name, said_in(folder))
    return one.handle_of(one.submitted(folder.name, asked, one.batch(folder, target)), folder)


def said_in(folder: Path) -> dict[str, str]:
    """Where Slurm writes what the job says before its own log begins."""
    return {name: str(folder / one.SAID) for name in ("output", "error")}


@dataclasses.dataclass(frozen=True, slots=True)
class _Array:
    target: Target
    name: str
    folders: list[Path]
    options: list[str]
    text: str


def _array(jobs: Sequence[Job]) -> _Array:
    target = target_of(jobs[0], Target, NAME)
    folders = [one.folder_of(job, target) for job in jobs]
    name = f"{folders[0].name}-array"
    # each task writes in its own folder, which only the task knows
    more = {"array": f"0-{len(jobs) - 1}", "output": "/dev/null", "error": "/dev/null"}
    asked = one.options(jobs[0], target, name, more)
    return _Array(target, name, folders, asked, one.batch_of_tasks(folders, target))


def _alike(jobs: Sequence[Job]) -> list[list[int]]:
    """The places of jobs that ask ``sbatch`` for the same, at most so many as an array takes."""
    groups: dict[tuple[str, ...], list[list[int]]] = {}
    for k, job in enumerate(jobs):
        target = target_of(job, Target, NAME)
        key = (*one.options(job, target, "", {}), repr(target))
        parts = groups.setdefault(key, [[]])
        if len(parts[-1]) == one.MOST_TASKS:
            parts.append([])
        parts[-1].append(k)
    return [part for parts in groups.values() for part in parts]
