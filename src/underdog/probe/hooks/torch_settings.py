"""The settings of a PyTorch run, and doubts about them."""

from __future__ import annotations

import glob
import os
from typing import Any

from ._software import environment, libraries, processors


def software(torch: Any, calls: Any = ()) -> tuple[dict[str, str], dict[str, Any]]:
    """``(libraries, settings)`` of the software record.

    Args:
        torch: the module.
        calls: the calls of a ``StepShapes``, for the number format that autocast gave them.
    """
    found = libraries()
    for name, version in (
        ("cuda", lambda: torch.version.cuda),
        ("hip", lambda: torch.version.hip),
        ("cudnn", torch.backends.cudnn.version),
        ("nccl", lambda: ".".join(map(str, torch.cuda.nccl.version()))),
    ):
        known = _or_none(version) if name in ("cuda", "hip") or torch.version.cuda else None
        if known:
            found[name] = str(known)
    questions = {
        "threads": torch.get_num_threads,
        "interop_threads": torch.get_num_interop_threads,
        "float32_matmul_precision": torch.get_float32_matmul_precision,
        "cuda_matmul_allow_tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
        "cudnn_allow_tf32": lambda: torch.backends.cudnn.allow_tf32,
        "cudnn_benchmark": lambda: torch.backends.cudnn.benchmark,
        "deterministic": torch.are_deterministic_algorithms_enabled,
        "mkldnn": lambda: torch.backends.mkldnn.enabled,
        "mkl": torch.backends.mkl.is_available,
        "cpu_capability": torch.backends.cpu.get_cpu_capability,
        "default_dtype": lambda: str(torch.get_default_dtype()).replace("torch.", ""),
    }
    settings = {name: _or_none(ask) for name, ask in questions.items()}
    settings["autocast"] = sorted(
        {str(dtype).replace("torch.", "") for c in calls for _, dtype in c.autocast}
    )
    settings["compile"] = any(c.compiled for c in calls)
    settings["environment"] = environment()
    return found, {name: value for name, value in settings.items() if value is not None}


def _or_none(ask: Any) -> Any:
    try:
        return ask()
    except Exception:  # absent in this version, or old and new ways of setting are mixed
        return None


def caveats(torch: Any, uses_accelerator: Any) -> list[tuple[str, str, str]]:
    """Doubts as ``(code, message, remedy)``.

    Args:
        torch: the module.
        uses_accelerator: whether parameters of the workload lie on one; None where unknown.
    """
    found = []
    available, threads = processors(), torch.get_num_threads()
    most = max(1, int(available))
    if threads > max(1, available):
        found.append(
            (
                "threads_over_quota",
                f"PyTorch computes with {threads} threads, but this process may use {available:g} "
                "processors",
                f"set OMP_NUM_THREADS={most}, or torch.set_num_threads({most})",
            )
        )
    if uses_accelerator is False:
        count = accelerators(torch)
        if count:
            found.append(_unused(torch, count))
    return found


def _unused(torch: Any, count: Any) -> tuple[str, str, str]:
    remedy = 'move the model and its batches there: model.to("cuda"), batch.to("cuda")'
    if torch.version.cuda is None and torch.version.hip is None:
        remedy = "install a PyTorch that is built for it; this one is built for CPUs alone"
    elif os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        remedy = "unset CUDA_VISIBLE_DEVICES, which hides it, and " + remedy
    message = f"THE ACCELERATOR IS NOT USED: this machine has {count}, the model lies on the CPU"
    return "accelerator_unused", message, remedy


def accelerators(torch: Any) -> int:
    """How many NVIDIA or AMD accelerators this process could use, by PyTorch or by device files."""
    try:
        if torch.cuda.is_available():
            return int(torch.cuda.device_count())
    except Exception:  # a driver that does not answer
        return 0
    return len(glob.glob("/dev/nvidia[0-9]*"))
