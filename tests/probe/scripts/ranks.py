"""Data-parallel training with gloo, under torchrun; or it starts its own ranks:

ranks.py spawn|fork FILE, where the ranks meet by a file that is not there yet.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from truth import Truth
from work import WIDTH, Net, loss_of, sgd


def train(**group: object) -> None:
    truth = Truth()
    dist.init_process_group("gloo", **group)
    data = TensorDataset(torch.randn(605, WIDTH), torch.randn(605, 1))
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


def spawned(rank: int, ranks: int, meeting: str) -> None:
    train(init_method=f"file://{meeting}", rank=rank, world_size=ranks)


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
