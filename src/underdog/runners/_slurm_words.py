"""What Slurm says: why a job waits, whether that ever ends, and how a job ended.

Sources: squeue(1), "JOB REASON CODES" and "JOB STATE CODES"; Slurm's page of resource limits.
"""

from __future__ import annotations

import re

from underdog.core.refusals import Kind, classify

# A limit on the sum of what runs is free again when something ends; one on each job, or on the
# minutes of a whole account, is not.
_NEVER: tuple[tuple[Kind, str], ...] = (
    ("not_offered", r"Partition(NodeLimit|TimeLimit|Config)$|BadConstraints$|MaxMemPerLimit$"),
    ("not_offered", r"Reservation(Deleted)$|RequiresReservation$|DependencyNeverSatisfied$"),
    ("permission", r"AccountNotAllowed$|QOSNotAllowed$|InvalidAccount$|InvalidQOS$"),
    ("quota", r"(Assoc|QOS)\w*Per(Job|Node)|QOSMin|(Assoc|QOS)GrpWallLimit$"),
    ("quota", r"(Assoc|QOS)Grp(?!\w*RunMinutes)\w*Minutes|(Association|QOS)TimeLimit$"),
    ("unknown", r"JobLaunchFailure|JobHoldMaxRequeue|launch_failed"),
)
_REFUSED: tuple[tuple[Kind, str], ...] = (
    ("quota", r"accounting/qos policy|job submit limit|violates"),
    ("not_offered", r"feature specification|node configuration is not available|invalid partition"),
    ("not_offered", r"generic resource|gres|node count|more processors|memory specification"),
    ("not_offered", r"requested (time|partition)|reservation|licenses? specification"),
    ("permission", r"account|invalid qos|not permitted|access/permission denied"),
)
_NEXT: dict[Kind, str] = {
    "not_offered": "See 'sinfo' and 'scontrol show partition', and correct the offer's partition, "
    "constraint, gres or flags.",
    "permission": "See 'sacctmgr show associations' for the accounts and QOS that you may use.",
}
_PLAIN = {
    "Resources": "it waits for nodes to become free",
    "Priority": "other jobs come first",
    "ReqNodeNotAvail": "its nodes are down, reserved or held back",
    "Licenses": "it waits for a license",
    "BeginTime": "it may not begin yet",
    "Dependency": "it waits for another job",
    "JobHeldUser": "it is held; 'scontrol release' lets it go",
    "JobHeldAdmin": "an administrator holds it",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition takes no jobs to run now",
    "Reservation": "it waits for its reservation",
}
_ENDINGS = {
    "NODE_FAIL": "its node failed or went down",
    "PREEMPTED": "it had to make room for a job of higher priority",
    "CANCELLED": "somebody cancelled it",
    "TIMEOUT": "Slurm's own limit of its time was over",
    "OUT_OF_MEMORY": 'it used more memory than Slurm gave it; ask for more: flags = ["--mem=…"]',
    "BOOT_FAIL": "its node did not come up",
    "DEADLINE": "its deadline was over",
    "FAILED": "it failed or was killed",
    "COMPLETED": "it ended without a result",
}


def never(reason: str) -> Kind | None:
    """Why a job with this reason will never run, or None where it may."""
    return next((kind for kind, pattern in _NEVER if re.match(pattern, reason)), None)


def waiting(reason: str) -> str:
    """Why a job waits, in plain words with Slurm's own."""
    plain = _PLAIN.get(reason.partition(",")[0])
    if reason in ("None", ""):
        return "Slurm has not looked at it yet"
    return f"{plain} ({reason})" if plain else reason


def ending(state: str) -> str:
    """How a job without a result ended."""
    plain = _ENDINGS.get(state)
    return f"{plain} ({state})" if plain else state


def refused(words: str) -> Kind | None:
    """What it means that ``sbatch`` took no job; None where it is no lack of a machine."""
    lower = words.lower()
    return next((kind for kind, pattern in _REFUSED if re.search(pattern, lower)), None)


def next_step(kind: Kind, words: str) -> str:
    """What to do about a refusal."""
    return _NEXT.get(kind) or classify(words).next_step
