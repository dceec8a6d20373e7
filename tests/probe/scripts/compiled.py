"""Loops under torch.compile. Usage: compiled.py KIND; prints how many graphs were compiled."""

from __future__ import annotations

import sys

import torch
from truth import Truth
from work import Net, loader, loss_of, sgd

BACKEND = "aot_eager"  # traces as inductor does, without a C++ compiler


def train(truth, model, optimizer) -> None:  # type: ignore[no-untyped-def]
    for _ in range(2):
        for x, y in loader(200):
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
            truth.step(len(x))


def model(truth: Truth) -> None:
    net = Net()
    train(truth, torch.compile(net, backend=BACKEND), sgd(net))


def fullgraph(truth: Truth) -> None:
    net = Net()
    train(truth, torch.compile(net, backend=BACKEND, fullgraph=True), sgd(net))


def in_place(truth: Truth) -> None:
    net = Net()
    net.compile(backend=BACKEND, fullgraph=True)
    train(truth, net, sgd(net))


def later(truth: Truth) -> None:
    """Eager first, so that the class is known when it is traced."""
    net = Net()
    train(truth, net, sgd(net))
    train(truth, torch.compile(net, backend=BACKEND, fullgraph=True), sgd(net))


def function(truth: Truth) -> None:
    net = Net()
    optimizer = sgd(net)

    @torch.compile(backend=BACKEND, fullgraph=True)
    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return loss_of(net, x, y)

    for x, y in loader(200):
        optimizer.zero_grad()
        loss(x, y).backward()
        optimizer.step()
        truth.step(len(x))


def graph_breaks(truth: Truth) -> None:
    class Broken(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = self.layers[0](x)
            torch._dynamo.graph_break()
            return self.layers[1:](hidden)

    net = Broken()
    train(truth, torch.compile(net, backend=BACKEND), sgd(net))


if __name__ == "__main__":
    truth = Truth()
    globals()[sys.argv[1]](truth)
    counters = torch._dynamo.utils.counters
    print("graphs", counters["stats"]["unique_graphs"], file=sys.stderr)
    truth.tell()
