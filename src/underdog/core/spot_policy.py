"""When to be on spot, on demand, or nowhere, so that a job is ready by its deadline.

Uniform progress (Wu et al., Can't Be Late, NSDI 2024): while spot is away, the job waits as long as
it is ahead of a straight line from start to deadline, and runs on demand while it is behind. Two
things differ here: from on demand it goes back to spot as soon as that is there and has been worth
a changeover so far, and it stays on demand until it is ahead by the time of a changeover there and
back. Whatever these rules say, the job goes on demand before it can no longer be ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

Place = Literal["idle", "spot", "on-demand"]
IDLE: Place = "idle"
SPOT: Place = "spot"
ON_DEMAND: Place = "on-demand"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """Hours of work, until the deadline, and that every start on a machine costs.

    ``pace`` is the share of an hour on spot that is work, for the rest goes to checkpoints;
    ``redo`` are the hours of work that an interruption undoes.
    """

    work: float
    deadline: float
    changeover: float
    pace: float = 1.0
    redo: float = 0.0

    def __post_init__(self) -> None:
        if not (self.work > 0 and self.changeover >= 0 and 0 < self.pace <= 1 and self.redo >= 0):
            raise ValueError(f"not a job: {self}")
        if not self.work + self.changeover <= self.deadline < float("inf"):
            raise ValueError(
                f"{self.work:g} h of work and a start of {self.changeover:g} h do not fit into "
                f"{self.deadline:g} h"
            )


@dataclass(slots=True)
class State:
    """Where the job is now; ``debt`` is what is left of a changeover."""

    now: float = 0.0
    progress: float = 0.0
    place: Place = IDLE
    debt: float = 0.0
    spot_hours: float = 0.0
    on_demand_hours: float = 0.0
    starts: int = 0
    ups: list[float] = field(default_factory=list)  # spot times that were seen to end
    up: float = 0.0  # how long spot has been there


Rule = Callable[[Job, State, bool], Place]


def decide(job: Job, state: State, there: bool, tick: float, rule: Rule | None = None) -> Place:
    """Where to be for the next ``tick`` hours.

    Args:
        there: whether spot is to be had now.
        rule: what is wanted as long as the deadline allows it; ``uniform_progress`` by default.
    """
    wanted = (rule or uniform_progress)(job, state, there)
    return wanted if wanted == ON_DEMAND or _safe(job, state, wanted, tick) else ON_DEMAND


def uniform_progress(job: Job, state: State, there: bool) -> Place:
    """Spot where it is there and worth it, on demand while behind the straight line, else wait."""
    if there and (state.place != ON_DEMAND or _worth_changing(job, state)):
        return SPOT
    # the straight line of uniform progress, a changeover there and back ahead once on demand
    ahead = 2 * job.changeover if state.place == ON_DEMAND else 0.0
    behind = state.progress < (state.now + ahead) * job.work / job.deadline
    return ON_DEMAND if behind else IDLE


def _worth_changing(job: Job, state: State) -> bool:
    """Whether spot has so far stayed longer than a changeover there and back takes."""
    if not state.ups:
        return True
    return (sum(state.ups) + state.up) / len(state.ups) > 2 * job.changeover


def _safe(job: Job, state: State, place: Place, tick: float) -> bool:
    """Whether on demand can still make it if this tick ends with the loss of the machine."""
    gained = redo = 0.0
    if place == SPOT:
        debt = state.debt if state.place == SPOT else job.changeover
        gained = max(tick - debt, 0.0) * job.pace
        redo = min(job.redo, state.progress + gained)
    needed = job.work - state.progress - gained
    if needed <= 0:
        return True
    needed += redo
    return state.now + tick + needed + job.changeover <= job.deadline + 1e-9


def step(job: Job, state: State, there: bool, tick: float, rule: Rule | None = None) -> Place:
    """Decide, and carry the state on by one tick; where the job was in it."""
    if state.place == SPOT and not there:
        state.place, state.debt = IDLE, 0.0
        state.progress = max(state.progress - job.redo, 0.0)
    place = decide(job, state, there, tick, rule)
    if there:
        state.up += tick
    elif state.up:
        state.ups.append(state.up)
        state.up = 0.0
    if place != state.place:
        state.debt = 0.0 if place == IDLE else job.changeover
        state.starts += place != IDLE
    state.place = place
    if place != IDLE:
        lost = min(state.debt, tick)
        pace = job.pace if place == SPOT else 1.0
        gained = min((tick - lost) * pace, job.work - state.progress)
        state.debt -= lost
        state.progress += gained
        if place == SPOT:
            state.spot_hours += lost + gained / pace
        else:
            state.on_demand_hours += lost + gained
    state.now += tick
    return place


def replay(job: Job, available: Iterable[bool], tick: float, rule: Rule | None = None) -> State:
    """The whole job over a recorded market; it ends when the work is done or the record ends."""
    state = State()
    for there in available:
        if state.progress >= job.work - 1e-9:
            break
        step(job, state, there, tick, rule)
    return state
