"""What every hook tells of the software around it, and how many processors it may use."""

from __future__ import annotations

import os
import sys

LIBRARIES = """
    torch numpy triton torchvision torchaudio transformers accelerate peft datasets tokenizers
    lightning pytorch_lightning deepspeed timm apex flash_attn xformers bitsandbytes torch_xla
    intel_extension_for_pytorch habana_frameworks jax jaxlib flax optax equinox keras tensorflow
"""
ENVIRONMENT = """
    OMP_ KMP_ GOMP_ MKL_ ONEDNN_ DNNL_ TORCHINDUCTOR_ TORCH_ PYTORCH_ CUDA_ NCCL_ CUBLAS_
    NVIDIA_TF32_OVERRIDE XLA_FLAGS JAX_ KERAS_BACKEND TF_ENABLE_ONEDNN_OPTS ATEN_CPU_CAPABILITY
    THP_MEM_ALLOC_ENABLE MALLOC_ LD_PRELOAD
"""


def libraries() -> dict[str, str]:
    """``{name: version}`` of those that are imported already; nothing is imported for it."""
    found = {}
    for name in LIBRARIES.split():
        module = sys.modules.get(name)
        if module is not None:
            version = getattr(module, "__version__", None) or _installed(name)
            if version is not None:
                found[name] = str(version)
    return found


def _installed(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def environment() -> dict[str, str]:
    """The environment's variables by which people tune these libraries."""
    known = tuple(ENVIRONMENT.split())
    return {k: v for k, v in sorted(os.environ.items()) if k.startswith(known)}


def processors() -> float:
    """Processors that this process may use: its affinity, less where a cgroup has a quota."""
    try:
        allowed = float(len(os.sched_getaffinity(0)))
    except AttributeError:  # not Linux
        allowed = float(os.cpu_count() or 1)
    return min([allowed, *_quotas()])


def _quotas(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> list[float]:
    """Processor quotas of this process's cgroup and those above it, version 1 and 2."""
    folders = {root, os.path.join(root, "cpu")}
    for line in _read(own).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "" or "cpu" in controllers.split(","):
            folder = os.path.join(root, "cpu" if controllers else "")
            for step in path.split("/"):
                folder = os.path.join(folder, step)
                folders.add(os.path.normpath(folder))
    known = (_quota(folder) for folder in sorted(folders))
    return [quota for quota in known if quota is not None]


def _quota(folder: str) -> float | None:
    words = _read(os.path.join(folder, "cpu.max")).split()
    if not words:
        words = _read(os.path.join(folder, "cpu.cfs_quota_us")).split()
        words += _read(os.path.join(folder, "cpu.cfs_period_us")).split()
    try:
        quota, period = float(words[0]), float(words[1])
    except (IndexError, ValueError):  # none, or "max"
        return None
    return quota / period if quota > 0 and period > 0 else None


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
