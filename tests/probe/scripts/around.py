"""Loops with something around the training: evaluation, checkpoints, other models. KIND"""

from __future__ import annotations

import io
import sys
import time

import torch
from truth import Truth
from work import WIDTH, Net, loader, loss_of, sgd

LONG = 0.02  # seconds of a forward, so that an evaluation is far longer than what the clocks miss


def train_epoch(truth, model, optimizer, batches) -> None:  # type: ignore[no-untyped-def]
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        truth.step(len(x))


def alternate(truth, evaluate) -> None:  # type: ignore[no-untyped-def]
    """Epochs with an evaluation between them; only those between steps are inside a step."""
    model = Net(sleep=LONG)
    optimizer = sgd(model)
    train, test = loader(105), loader(200, 50)
    for epoch in range(4):
        train_epoch(truth, model, optimizer, train)
        began = time.perf_counter()
        evaluate(model, test)
        if epoch < 3:
            truth.pause("evaluation", time.perf_counter() - began)


def evaluation(truth: Truth) -> None:
    @torch.no_grad()
    def evaluate(model, test) -> None:  # type: ignore[no-untyped-def]
        model.eval()
        for x, y in test:
            loss_of(model, x, y)

    alternate(truth, evaluate)


def evaluation_first(truth: Truth) -> None:
    model = Net()
    with torch.inference_mode():
        model.eval()
        for x, y in loader(200, 50):
            loss_of(model, x, y)
    train_epoch(truth, model, sgd(model), loader())


def evaluation_broken_off(truth: Truth) -> None:
    @torch.inference_mode()
    def evaluate(model, test) -> None:  # type: ignore[no-untyped-def]
        for index, (x, y) in enumerate(test):
            loss_of(model, x, y)
            if index == 1:
                break

    alternate(truth, evaluate)


def evaluation_with_gradients(truth: Truth) -> None:
    def evaluate(model, test) -> None:  # type: ignore[no-untyped-def]
        model.eval()
        for x, y in test:
            loss_of(model, x, y).item()

    alternate(truth, evaluate)


def evaluation_by_hand(truth: Truth) -> None:
    """As nanoGPT does: no loader at all."""

    @torch.no_grad()
    def evaluate(model, _test) -> None:  # type: ignore[no-untyped-def]
        model.eval()
        for _ in range(5):
            model(torch.randn(64, WIDTH))

    model = Net(sleep=LONG)
    optimizer = sgd(model)
    for _ in range(4):
        batches = ((torch.randn(12, WIDTH), torch.randn(12, 1)) for _ in range(8))
        train_epoch(truth, model, optimizer, batches)
        began = time.perf_counter()
        evaluate(model, None)
        if _ < 3:
            truth.pause("evaluation", time.perf_counter() - began)


def training_accuracy(truth: Truth) -> None:
    """Evaluates on the loader that it trains on."""

    @torch.no_grad()
    def evaluate(model, batches) -> None:  # type: ignore[no-untyped-def]
        model.eval()
        for x, y in batches:
            loss_of(model, x, y)

    model = Net(sleep=LONG)
    optimizer, batches = sgd(model), loader(105)
    for epoch in range(3):
        train_epoch(truth, model, optimizer, batches)
        began = time.perf_counter()
        evaluate(model, batches)
        if epoch < 2:
            truth.pause("evaluation", time.perf_counter() - began)


def statistics_first(truth: Truth) -> None:
    """Reads the data once for its mean, with no model at all."""
    batches = loader()
    total = sum(x.sum() for x, _ in batches)
    model = Net()
    train_epoch(truth, model, sgd(model), batches)
    assert total is not None


def distillation(truth: Truth) -> None:
    teacher, student = Net(sleep=0.002).eval(), Net(sleep=0.002)
    optimizer = sgd(student)
    for x, _ in loader():
        with torch.no_grad():
            wanted = teacher(x)
        optimizer.zero_grad()
        loss_of(student, x, wanted).backward()
        optimizer.step()
        truth.step(len(x))


def frozen_part(truth: Truth) -> None:
    body, head = Net(WIDTH, sleep=0.004).eval(), torch.nn.Linear(WIDTH, 1)
    optimizer = sgd(head)
    for x, y in loader():
        with torch.no_grad():
            features = body(x)
        optimizer.zero_grad()
        loss_of(head, features, y).backward()
        optimizer.step()
        truth.step(len(x))


def checkpoint(truth: Truth) -> None:
    model = Net()
    optimizer = sgd(model)
    for index, (x, y) in enumerate(loader()):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        truth.step(len(x))
        if index % 5 == 4 and index < 20:
            state = {"big": torch.zeros(4_000_000), "model": model.state_dict()}
            began = time.perf_counter()
            torch.save(state, io.BytesIO())
            truth.pause("checkpoint", time.perf_counter() - began)


def several_models(truth: Truth) -> None:
    """Two models that train by turns, each with its own optimizer and loader."""
    models = Net(), Net()
    optimizers = [sgd(m) for m in models]
    for model, optimizer in zip(models, optimizers, strict=True):
        train_epoch(truth, model, optimizer, loader(105))


def recomputation(truth: Truth) -> None:
    from torch.utils.checkpoint import checkpoint as recomputed

    model = Net()
    optimizer = sgd(model)
    for x, y in loader():
        optimizer.zero_grad()
        out = recomputed(model, x, use_reentrant=False)
        torch.nn.functional.mse_loss(out, y).backward()
        optimizer.step()
        truth.step(len(x))


def out_of_memory(truth: Truth) -> None:
    model = Net()
    train_epoch(truth, model, sgd(model), loader())
    truth.tell()
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 byte")


def own_thread(truth: Truth) -> None:
    import threading

    model = Net()
    arguments = (truth, model, sgd(model), loader())
    thread = threading.Thread(target=train_epoch, args=arguments)
    thread.start()
    thread.join()


if __name__ == "__main__":
    truth = Truth()
    globals()[sys.argv[1]](truth)
    truth.tell()
