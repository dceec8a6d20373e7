"""What the workload profile costs and how close it comes, on models of known size.

    python benchmarks/workload_profile.py [--data FILE]

Prints, per model: seconds that the profile takes (first use, then again), flops per sample against
the formula, and activation bytes against what autograd keeps in a real forward. ``--data`` also
writes the rows as JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from train_gpt import GPT

from underdog.probe.hooks.torch_profile import StepShapes, profile_step


def gpt(layers: int, width: int, length: int, batch: int) -> dict[str, Any]:
    model = GPT(length, width, layers, heads=width // 32)
    looked_up = model.tokens.weight.numel() + model.places.weight.numel()
    weights = sum(p.numel() for p in model.parameters()) - looked_up
    # 6 N + 12 L H Q T per token, as nanoGPT counts
    formula = (6 * weights + 12 * layers * width * length) * length
    return row(f"GPT {layers}x{width}", model, torch.zeros(batch, length).long(), formula)


def convolutions(size: int, batch: int) -> dict[str, Any]:
    widths = (3, 32, 64, 128)
    layers: list[nn.Module] = []
    formula = 0
    for i, (a, b) in enumerate(itertools.pairwise(widths)):
        layers += [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.ReLU()]
        formula += (2 if i == 0 else 3) * 2 * 9 * a * b * size * size
    return row("convolutions", nn.Sequential(*layers), torch.zeros(batch, 3, size, size), formula)


def row(name: str, model: nn.Module, x: torch.Tensor, formula: float) -> dict[str, Any]:
    seconds = []
    for _ in range(2):
        shapes = StepShapes(torch)
        shapes.see(model, (x,), {})
        start = time.perf_counter()
        fields = profile_step(torch, shapes, [], len(x)).fields
        seconds.append(time.perf_counter() - start)
    return {
        "model": name,
        "first_s": round(seconds[0], 3),
        "again_s": round(seconds[1], 3),
        "flops_to_formula": round(fields["flops_per_sample"] / formula, 4),
        "activations_to_real": round(fields["activation_bytes"] / kept(model, x), 4),
    }


def kept(model: nn.Module, x: torch.Tensor) -> int:
    """Bytes of the distinct tensors that autograd keeps in a real forward, without parameters."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    found: dict[int, Any] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = model(x)
    del out
    return sum(storage.nbytes() for storage in found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="also write the rows here, as JSON")
    options = parser.parse_args()
    rows = [gpt(2, 64, 64, 4), gpt(6, 192, 128, 4), gpt(12, 384, 128, 4), convolutions(32, 8)]
    for name in rows[0]:
        print(f"{name:>20}", *(f"{r[name]!s:>14}" for r in rows))
    if options.data:
        options.data.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
