"""The small model and data that the scripts train on; a step takes some milliseconds."""

from __future__ import annotations

import time

import torch
from torch.utils.data import DataLoader, TensorDataset

WIDTH = 8
SLEEP = 0.004


class Net(torch.nn.Module):
    def __init__(self, out: int = 1, sleep: float = SLEEP) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 16), torch.nn.ReLU(), torch.nn.Linear(16, out)
        )
        self.sleep = sleep

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.sleep and not torch.compiler.is_compiling():
            time.sleep(self.sleep)
        return self.layers(x)


def loader(samples: int = 205, batch: int = 10, **options: object) -> DataLoader:
    data = TensorDataset(torch.randn(samples, WIDTH), torch.randn(samples, 1))
    return DataLoader(data, batch_size=batch, **options)


def loss_of(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mse_loss(model(x), y)


def sgd(model: torch.nn.Module, **options: object) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01, **options)
