"""The nouns, frozen. Every record that underdog stores or prints is one of these.

Names carry units: ``memory_gib`` is GiB (2^30 bytes), ``*_gbps`` is 10^9 bits per second,
``*_gb_per_s`` is 10^9 bytes per second, ``*_tflops`` is 10^12 operations per second, dense.
``None`` always means unknown, never zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

Status = Literal[
    "running",
    "ok",
    "out_of_memory",
    "no_capacity",
    "interrupted",
    "failed",
    "hung",
    "no_steps",
    "stopped",
]
Bound = Literal[
    "data", "cpu", "accelerator_compute", "accelerator_memory", "communication", "launch", "unknown"
]


UNKNOWN = "unknown"  # provider and region of a machine of which only a name was said


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """USD per hour of the whole machine, or unknown with a reason. Never 0 for unknown.

    Raises:
        ValueError: an amount that is not a positive finite number, or an amount together with a
            reason why it is unknown, or neither.
    """

    per_hour: float | None = None
    currency: str = "USD"
    source: str = ""
    date: str = ""  # ISO 8601, the day the price was valid
    unknown_reason: str | None = None

    def __post_init__(self) -> None:
        if (self.per_hour is None) == (self.unknown_reason is None):
            raise ValueError("a price is either an amount or unknown with a reason")
        if self.per_hour is not None and not (math.isfinite(self.per_hour) and self.per_hour > 0):
            raise ValueError(f"a price must be positive and finite, not {self.per_hour}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """One row of the catalog; ``underdog.core.columns`` documents every field.

    ``accelerator_memory_gib`` is the nominal size of each accelerator (what people call a 24 GB
    card is 24), ``accelerator_usable_gib`` what a program can use of it. A fraction of an
    accelerator has a count below 1 and the memory of that fraction.
    """

    provider: str
    region: str
    instance_type: str
    purchase: str = "on-demand"
    term: str | None = None  # what is committed to, of a reserved offer
    zone: str | None = None
    nodes: int = 1
    price: Price
    vcpus: float | None = None
    memory_gib: float | None = None
    arch: str | None = None
    accelerator: str | None = None
    accelerator_count: float = 0
    accelerator_memory_gib: float | None = None
    accelerator_usable_gib: float | None = None

    @property
    def id(self) -> str:
        """``provider/region-or-zone/instance_type/purchase``, with ``Nx`` before the type of N.

        The term of a reserved offer follows its purchase: ``reserved:1y``. A machine of one's own,
        of which no more than a name was said, is called by that name.
        """
        purchase = f"{self.purchase}:{self.term}" if self.term else self.purchase
        place = self.zone or self.region
        return offer_id(self.provider, place, self.instance_type, purchase, self.nodes)


def offer_id(provider: str, place: str, instance_type: str, purchase: str, nodes: int = 1) -> str:
    """The one spelling of an offer's name in tables, flags and records."""
    plain = nodes == 1 and purchase == "on-demand" and "/" not in instance_type
    if plain and provider == place == UNKNOWN:
        return instance_type
    shape = f"{nodes}x{instance_type}" if nodes != 1 else instance_type
    return f"{provider}/{place}/{shape}/{purchase}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A mean with its 95 % confidence interval from n observations."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Caveat:
    """A typed doubt about a number, with its remedy. ``docs/reference/caveats.md`` lists them."""

    code: str
    message: str
    remedy: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """What one run showed. Throughputs are of the whole job: the sum over its ranks.

    ``samples_per_second`` leaves warm-up and pauses (evaluation, checkpoints) out;
    ``samples_per_second_with_pauses`` leaves only warm-up out. ``steps`` and ``samples`` count
    all observed steps, warm-up included. One step is one attempt to update the weights: the
    micro-batches of gradient accumulation belong to one step, and a step that a gradient scaler
    skipped counts (``skipped_steps`` says how many).
    """

    samples_per_second: Estimate | None = None
    samples_per_second_with_pauses: float | None = None
    step_seconds: Estimate | None = None
    steps: int = 0
    samples: int | None = None
    skipped_steps: int = 0
    batch_size: float | None = None  # samples per step over all ranks, the median
    ranks: int = 1
    warmup_steps: int = 0
    warmup_seconds: float = 0.0
    pauses: dict[str, float] = field(default_factory=dict)  # seconds by kind
    pause_counts: dict[str, int] = field(default_factory=dict)  # how many of each kind
    seconds: float = 0.0  # from the first step observed to the last


@dataclass(frozen=True, kw_only=True, slots=True)
class Accelerator:
    """One accelerator of a machine as its driver tells it."""

    name: str
    memory_gib: float | None = None
    index: int = 0
    driver: str | None = None
    power_limit_w: float | None = None
    uuid: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The machine on which a trial ran. Cloud facts are None where no metadata service answers."""

    hostname: str = ""
    provider: str | None = None
    region: str | None = None
    zone: str | None = None
    instance_type: str | None = None
    purchase: str | None = None
    cpu_model: str | None = None
    arch: str | None = None
    cpu_ghz: float | None = None
    cpu_sockets: int | None = None
    cpu_cores: int | None = None  # physical cores
    vcpus: float | None = None  # what this process may use: affinity and cgroup quota applied
    vector_bits: int | None = None  # widest vector unit: 128, 256 or 512
    memory_gib: float | None = None  # cgroup limit applied
    accelerators: list[Accelerator] = field(default_factory=list)
    os: str | None = None
    kernel: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Software:
    """The software of a trial."""

    python: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    libraries: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)  # number formats, threads, compile
    driver: str | None = None
    commit: str | None = None  # of the working tree the script lies in
    dirty: bool | None = None
    underdog: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """What the workload asks of any machine, per rank. The input of prediction.

    ``flops_per_sample`` counts forward and backward, 2 per multiply-add; not the optimizer.
    """

    flops_per_sample: float | None = None
    forward_flops_per_sample: float | None = None
    parameters: int | None = None
    parameter_bytes: int | None = None
    gradient_bytes: int | None = None
    optimizer_bytes: int | None = None
    activation_bytes: int | None = None
    memory_traffic_bytes_per_sample: float | None = None
    number_format: str | None = None  # float32, bfloat16, float16 of the heaviest operations
    batch_size: float | None = None  # samples per step of one rank
    cpu_seconds_per_sample: float | None = None
    read_bytes_per_sample: float | None = None
    input_shapes: list[list[int]] = field(default_factory=list)
    uses_accelerator: bool | None = None
    accelerators_used: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Timeline:
    """How a trial went over time, thinned; its times are seconds since the first observed step.

    ``steps`` and ``usage`` are tables by column, every column of one length. ``steps`` has
    ``seconds`` (at the end of a stretch of steps), ``step`` (the number of its last) and
    ``samples_per_second`` (over the stretch, pauses left out). ``usage`` has ``seconds`` and the
    readings of the machine by name. ``pauses`` has begin and end of each, by kind.
    """

    steps: dict[str, list[float | None]] = field(default_factory=dict)
    usage: dict[str, list[float | None]] = field(default_factory=dict)
    pauses: dict[str, list[list[float]]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One attempt to run a workload on a machine; what ``measure --json`` prints."""

    id: str
    workload: str
    command: list[str] = field(default_factory=list)
    knobs: dict[str, str] = field(default_factory=dict)
    status: Status
    reason: str | None = None
    exit_code: int | None = None
    started_at: str = ""  # ISO 8601, UTC
    ended_at: str | None = None
    runner: str = "local"
    offer: Offer | None = None
    price: Price
    measurement: Measurement | None = None
    phases: dict[str, float] = field(default_factory=dict)  # share of step time, sums to 1
    bound_by: Bound = "unknown"
    bound_reason: str | None = None
    peak_memory_gib: dict[str, float | None] = field(default_factory=dict)  # host, accelerator
    usage: dict[str, float | None] = field(default_factory=dict)
    caveats: list[Caveat] = field(default_factory=list)
    machine: Machine
    software: Software
    profile: Profile | None = None
    source: str = "measured"  # where the numbers come from: measured here, or an imported file
    owner: dict[str, Any] = field(default_factory=dict)  # of a running trial: host, pid, boot
    handle: str | None = None  # of a running trial: what its runner finds the job by
    study: str | None = None  # id of the study that asked for it
    dollars: float | None = None  # what the machine time of the trial cost
    why: str | None = None  # why the search asked for it
    updated_at: str | None = None  # of a running trial: when it was last heard of, ISO 8601, UTC
    files: str | None = None  # of a whole run elsewhere: the command that fetches what it wrote
    timeline: Timeline | None = None  # a store gives it only where it is asked for


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """Ranked offers with reasons; what ``choose --json`` prints, with what it rests on."""

    id: str
    workload: str
    created_at: str
    utility: str
    better: Literal["higher", "lower"]
    constraints: list[str] = field(default_factory=list)
    snapshot: str = ""  # content hash of the catalog
    snapshot_date: str = ""
    trials: list[str] = field(default_factory=list)  # the ids it rests on
    assumptions: list[str] = field(default_factory=list)
    candidates: int = 0
    ranking: list[dict[str, Any]] = field(default_factory=list)
    ledger: list[dict[str, Any]] = field(default_factory=list)
    test_next: list[dict[str, Any]] = field(default_factory=list)
    caveats: list[Caveat] = field(default_factory=list)
    best_measured: str | None = None  # the offer that leads among the measured
    funnel: list[dict[str, Any]] = field(default_factory=list)  # the ledger, counted
    expires_at: str = ""  # ISO 8601; prices and software have moved by then
    rests_on: dict[str, Any] = field(default_factory=dict)  # what was asked, tests, software, days
    services: dict[str, Any] = field(default_factory=dict)  # layers of service for a volume
    fallback: list[dict[str, Any]] = field(default_factory=list)  # what to ask for, in this order
    plans: list[dict[str, Any]] = field(default_factory=list)  # spot and on demand by a deadline
    study: str | None = None  # id of the study that it ended
    exploration: dict[str, Any] = field(default_factory=dict)  # what that study came to
