"""Data-parallel training with gloo. Under torchrun, or ``ranks.py spawn`` starts its own ranks."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from truth import Truth
from work import WIDTH, Net, loss_of, sgd


def train() -> None:
    truth = Truth()
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(205, WIDTH), torch.randn(205, 1))
    model = DistributedDataParallel(Net())
    optimizer = sgd(model)
    for x, y in DataLoader(data, 10, sampler=DistributedSampler(data)):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        truth.step(len(x))
        dist.all_reduce(loss.detach())
    dist.destroy_process_group()
    truth.tell()


def spawned(rank: int, ranks: int, port: str) -> None:
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=port
    )
    train()


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["spawn"]:
        torch.multiprocessing.spawn(spawned, args=(2, sys.argv[2]), nprocs=2)
    elif sys.argv[1:2] == ["fork"]:
        torch.multiprocessing.start_processes(
            spawned, args=(2, sys.argv[2]), nprocs=2, start_method="fork"
        )
    else:
        train()
