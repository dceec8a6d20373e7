"""What is known of a trial besides its rate, in words: memory, processor, accelerator, price."""

from __future__ import annotations

from collections.abc import Mapping

from underdog.core.views.words import finite, plain, positive, shown
from underdog.model import Trial
from underdog.units import format_seconds

LEAST_TRAFFIC = 1e5  # bytes per second that are worth a word
STATUS_WORDS = {
    "ok": "measured",
    "interrupted": "interrupted",
    "stopped": "stopped",
    "running": "running",
    "out_of_memory": "out of memory",
    "no_capacity": "no capacity",
    "failed": "failed",
    "hung": "hung",
    "no_steps": "no steps seen",
}
PHASE_NAMES = {
    "data": "waiting for data",
    "transfer": "host to device",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "communication": "communication",
    "other": "other",
}
BOUND_NAMES = {
    "data": "waiting for data",
    "cpu": "the processor",
    "accelerator_compute": "the accelerator's arithmetic",
    "accelerator_memory": "the accelerator's memory bandwidth",
    "communication": "communication",
    "launch": "launching work on the accelerator",
}
_TRAFFIC = {
    "disk_read_bytes_per_second": "read",
    "disk_write_bytes_per_second": "written",
    "network_receive_bytes_per_second": "received",
    "network_send_bytes_per_second": "sent",
}


def facts(trial: Trial) -> list[tuple[str, str]]:
    """Name and text of each, in the order in which they are told; what is unknown is left out."""
    told = {
        "machine": [machine_text(trial)],
        "step": step_words(trial),
        "pauses": pause_words(trial),
        "memory": memory_words(trial),
        "processor": processor_words(trial),
        "accelerator": accelerator_words(trial),
        "disk, network": traffic_words(trial),
        "price": price_words(trial),
        "software": software_words(trial),
    }
    return [(name, " · ".join(map(shown, words))) for name, words in told.items() if words]


def machine_text(trial: Trial) -> str:
    """The machine in a few words."""
    machine = trial.machine
    words = [word for word in (machine.provider, machine.instance_type) if word]
    cpu = f"{machine.vcpus:g} vCPU" if positive(machine.vcpus) else None
    words += [word for word in (cpu, machine.cpu_model) if word]
    if machine.accelerators:
        words.append(f"{len(machine.accelerators)} × {machine.accelerators[0].name}")
    if positive(machine.memory_gib):
        words.append(f"{machine.memory_gib:.0f} GiB")
    offered = trial.offer.id if trial.offer else None  # all that is known of one never reached
    return ", ".join(words) or machine.hostname or offered or "this machine"


def step_words(trial: Trial) -> list[str]:
    """How large a step is and how long it takes, how many there were, and the warm-up."""
    m = trial.measurement
    if m is None or not m.steps:
        return []
    words = [f"{m.batch_size:g} samples a step"] if positive(m.batch_size) else []
    if m.ranks > 1:
        words.append(f"{m.ranks} ranks")
    if m.step_seconds is not None and positive(m.step_seconds.value):
        words.append(f"{format_seconds(m.step_seconds.value)} a step")
    words.append(steps_text(m.steps) + (f", {m.samples:,} samples" if m.samples else ""))
    if m.skipped_steps:
        words.append(f"{m.skipped_steps:,} skipped by the gradient scaler")
    if m.warmup_steps and finite(m.warmup_seconds) is not None:
        took = format_seconds(m.warmup_seconds)
        words.append(f"warm-up of {steps_text(m.warmup_steps)} ({took}) left out")
    return words


def steps_text(steps: int) -> str:
    """``1 step``, ``2,000 steps``."""
    return f"{steps:,} step{'s' * (steps != 1)}"


def pause_words(trial: Trial) -> list[str]:
    """What interrupted the steps, which the rate leaves out."""
    m = trial.measurement
    known = {} if m is None else {k: v for k, v in m.pauses.items() if positive(v)}
    words = [f"{kind} {format_seconds(seconds)}" for kind, seconds in known.items()]
    if words and m is not None and positive(m.samples_per_second_with_pauses):
        words.append(f"with them {plain(m.samples_per_second_with_pauses or 0.0, 4)} samples/s")
    return words


def memory_words(trial: Trial) -> list[str]:
    """The peaks of the host's and the accelerators' memory."""
    names = {"host": "host", "accelerator": "each accelerator"}
    peaks = {words: positive(trial.peak_memory_gib.get(key)) for key, words in names.items()}
    return [f"peak {gib(peak)} {words}" for words, peak in peaks.items() if peak is not None]


def processor_words(trial: Trial) -> list[str]:
    """How busy the processor was, and who else used it."""
    use, words = _known(trial.usage), []
    if "cores" in use:
        of = f" of {trial.machine.vcpus:g}" if trial.machine.vcpus else ""
        words.append(f"{use['cores']:.2f}{of} vCPUs busy")
    if "cpu_ghz" in use:
        words.append(f"{use['cpu_ghz']:.2f} GHz")
    if "cpu_power_w" in use:
        words.append(f"{use['cpu_power_w']:.0f} W")
    if use.get("other_load_cores", 0) > 0.05:
        words.append(f"others use {use['other_load_cores']:.2f}")
    if use.get("steal_cores", 0) > 0.01:
        words.append(f"{use['steal_cores']:.2f} stolen by the hypervisor")
    return words


def accelerator_words(trial: Trial) -> list[str]:
    """How many accelerators were used, and how busy they were."""
    use, words = _known(trial.usage), []
    busy = use.get("accelerators_busy")
    if busy is not None and trial.machine.accelerators:
        words.append(f"{busy:.0f} of {len(trial.machine.accelerators)} used")
    if not busy:
        return words
    told = {
        "accelerator_utilization": ("busy {:.0f} % of the time", 100),
        "accelerator_memory_activity": ("its memory {:.0f} %", 100),
        "accelerator_power_w": ("{:.0f} W", 1),
        "accelerator_clock_mhz": ("{:.0f} MHz", 1),
    }
    return words + [text.format(by * use[key]) for key, (text, by) in told.items() if key in use]


def traffic_words(trial: Trial) -> list[str]:
    """Disk and network, where there was any to speak of."""
    use = _known(trial.usage)
    rates = {words: use.get(key, 0.0) for key, words in _TRAFFIC.items()}
    return [f"{r / 1e6:.1f} MB/s {words}" for words, r in rates.items() if r > LEAST_TRAFFIC]


def price_words(trial: Trial) -> list[str]:
    """The price of the machine, and what a dollar of it did."""
    price = trial.price
    if price.per_hour is None:
        return [f"unknown: {price.unknown_reason}"]
    words = [f"${price.per_hour:,.4g} per hour"]
    rate = trial.measurement.samples_per_second if trial.measurement else None
    per_hour = None if rate is None else positive(rate.value * 3600)
    if per_hour is not None:
        bought, million = per_hour / price.per_hour, price.per_hour / per_hour * 1e6
        if positive(bought) and positive(million):
            words.append(f"{plain(bought, 4)} samples per dollar")
            words.append(f"${plain(million)} per million samples")
    if price.source:
        words.append(f"{price.source} {price.date}".strip())
    return words


def software_words(trial: Trial) -> list[str]:
    """Framework, Python and driver with their versions."""
    software = trial.software
    named = {
        software.framework or "framework": software.framework_version,
        "Python": software.python,
        "driver": software.driver,
    }
    words = [f"{name} {version}" for name, version in named.items() if version]
    if software.commit:
        words.append(f"commit {software.commit[:12]}{' with changes' if software.dirty else ''}")
    return words


def gib(value: float) -> str:
    """GiB, or MiB where that reads better."""
    return f"{value:.2f} GiB" if value >= 1 else f"{value * 1024:.0f} MiB"


def knob_text(knobs: Mapping[str, str]) -> str:
    """``batch=8 dtype=bf16``."""
    return " ".join(f"{shown(name)}={shown(value)}" for name, value in knobs.items())


def _known(usage: Mapping[str, float | None]) -> dict[str, float]:
    found = {name: finite(value) for name, value in usage.items()}
    return {name: value for name, value in found.items() if value is not None}
