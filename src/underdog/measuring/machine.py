"""The machine under the script: processor, memory, accelerators, cloud; and the code's commit."""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import psutil

from underdog.measuring.cgroup import Cgroup, read_int, read_text
from underdog.measuring.metadata import cloud_facts
from underdog.measuring.nvml import Nvml
from underdog.model import Accelerator, Machine
from underdog.units import GIB

GIT_LIMIT = 1.0  # seconds: a huge working tree is not worth a wait
AMD = "0x1002"  # PCI vendor number
# arm64 kernels tell numbers only; from the Linux source, arch/arm64/include/asm/cputype.h
ARM_PARTS = {
    "0xd0c": "Neoverse-N1",
    "0xd40": "Neoverse-V1",
    "0xd49": "Neoverse-N2",
    "0xd4f": "Neoverse-V2",
    "0xd8e": "Neoverse-N3",
    "0xd84": "Neoverse-V3",
}
# (flag, bits), the widest first
VECTOR_FLAGS = (("avx512f", 512), ("avx", 256), ("sse2", 128), ("asimd", 128), ("neon", 128))


def describe(nvml: Nvml, env: Mapping[str, str] = os.environ) -> Machine:
    """What this machine is, as far as it tells."""
    facts = cloud_facts(env)
    info = read_text(Path("/proc/cpuinfo")) or ""
    group = Cgroup()
    memory = [psutil.virtual_memory().total, group.memory_limit()]
    return Machine(
        hostname=socket.gethostname(),
        provider=facts.get("provider"),
        region=facts.get("region"),
        zone=facts.get("zone"),
        instance_type=facts.get("instance_type"),
        purchase=facts.get("purchase"),
        cpu_model=cpu_model(info),
        arch={"aarch64": "arm64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine()),
        cpu_ghz=cpu_ghz(info),
        cpu_sockets=cpu_sockets(info),
        cpu_cores=psutil.cpu_count(logical=False),
        vcpus=usable_cpus(group),
        vector_bits=vector_bits(info),
        memory_gib=min(m for m in memory if m is not None) / GIB,
        accelerators=nvml.accelerators() or amd_accelerators() or neuron_accelerators(),
        os=operating_system(),
        kernel=platform.release(),
    )


def values(info: str, key: str) -> list[str]:
    """All values of one key of /proc/cpuinfo."""
    return re.findall(rf"^{re.escape(key)}[ \t]*:[ \t]*(.*)$", info, re.MULTILINE)


def cpu_model(info: str) -> str | None:
    """The processor's name as /proc/cpuinfo or the Arm part number tells it."""
    if names := values(info, "model name"):
        return names[0].strip()
    parts = values(info, "CPU part")
    return ARM_PARTS.get(parts[0].strip()) if parts else None


def cpu_ghz(info: str) -> float | None:
    """The highest clock the processor may take, else the one it runs at, in GHz."""
    limit = read_int(Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
    if limit:
        return limit / 1e6
    clocks = [float(v) for v in values(info, "cpu MHz")]
    return max(clocks) / 1000 if clocks else None


def cpu_sockets(info: str) -> int | None:
    """Processor packages, None where the kernel does not tell them apart."""
    return len(set(values(info, "physical id"))) or None


def vector_bits(info: str) -> int | None:
    """The widest vector unit that the kernel lets programs use."""
    lines = values(info, "flags") or values(info, "Features")
    if not lines:
        return None
    flags = set(lines[0].split())
    if "sve" in flags:
        width = read_int(Path("/proc/sys/abi/sve_default_vector_length"))  # bytes
        if width:
            return width * 8
    return next((bits for flag, bits in VECTOR_FLAGS if flag in flags), None)


def usable_cpus(group: Cgroup) -> float:
    """Processors that this process may use: its affinity and the tightest quota applied."""
    allowed = float(len(os.sched_getaffinity(0)))
    quota = group.cpu_quota()
    return allowed if quota is None else min(allowed, quota)


def amd_accelerators(root: Path = Path("/sys/class/drm")) -> list[Accelerator]:
    """AMD accelerators as the amdgpu driver shows them."""
    found: list[Accelerator] = []
    for card in sorted(root.glob("card[0-9]*")):
        device = card / "device"
        memory = read_int(device / "mem_info_vram_total")
        if "-" in card.name or read_text(device / "vendor") != AMD or not memory:
            continue
        name = read_text(device / "product_name") or f"AMD {read_text(device / 'device') or ''}"
        found.append(Accelerator(name=name.strip(), memory_gib=memory / GIB, index=len(found)))
    return found


def neuron_accelerators(
    root: Path = Path("/sys/devices/virtual/neuron_device"),
) -> list[Accelerator]:
    """AWS Trainium and Inferentia chips as the Neuron driver shows them."""
    folders = sorted(root.glob("neuron[0-9]*"), key=lambda p: int(p.name[6:]))
    return [
        Accelerator(
            name=read_text(folder / "info/architecture/device_name") or "Neuron", index=index
        )
        for index, folder in enumerate(folders)
    ]


def operating_system(path: Path = Path("/etc/os-release")) -> str | None:
    """The distribution's name for people."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]*)', read_text(path) or "", re.MULTILINE)
    return found.group(1) if found else platform.system() or None


def commit_of(folder: Path) -> tuple[str | None, bool | None]:
    """The commit checked out in a folder and whether tracked files differ from it."""
    commit = git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if not commit:
        return None, None
    changes = git(folder, "status", "--porcelain", "--untracked-files=no")
    return commit, None if changes is None else bool(changes)


def git(folder: Path, *args: str) -> str | None:
    """The output of one git command, None where git or the repository is missing or slow."""
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *args],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=GIT_LIMIT,
            stdin=subprocess.DEVNULL,
            env=env,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
