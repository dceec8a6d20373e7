"""Loops that differ in how the weights are updated. Usage: updates.py KIND"""

from __future__ import annotations

import sys

import torch
from truth import Truth
from work import WIDTH, Net, loader, loss_of, sgd


def plain(truth: Truth) -> None:
    model = Net()
    optimizer = sgd(model)
    for _ in range(2):
        for x, y in loader(shuffle=True):
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
            truth.step(len(x))


def fused(truth: Truth) -> None:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for x, y in loader():
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        truth.step(len(x))


def foreach(truth: Truth) -> None:
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    for x, y in loader():
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
        truth.step(len(x))


def accumulation(truth: Truth) -> None:
    model = Net(sleep=0.001)
    optimizer = sgd(model)
    held = 0
    for _ in range(3):
        for index, (x, y) in enumerate(loader()):
            (loss_of(model, x, y) / 4).backward()
            held += len(x)
            if index % 4 == 3:  # the last of an epoch joins the next epoch's first
                optimizer.step()
                optimizer.zero_grad()
                truth.step(held)
                held = 0


def no_optimizer(truth: Truth) -> None:
    model = Net()
    for x, y in loader():
        model.zero_grad()
        loss_of(model, x, y).backward()
        truth.step(len(x))
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(p.grad, alpha=0.01)


def functional_gradient(truth: Truth) -> None:
    weight = torch.zeros(WIDTH, 1, requires_grad=True)
    model = Net()
    for x, y in loader():
        loss = ((model(x) + x @ weight - y) ** 2).mean()
        (gradient,) = torch.autograd.grad(loss, [weight])
        truth.step(len(x))
        weight = (weight - 0.01 * gradient).detach().requires_grad_()


def lbfgs(truth: Truth) -> None:
    model = Net(sleep=0.001)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    for x, y in loader():

        def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            return loss

        optimizer.step(closure)
        truth.step(len(x))


def closure_step(truth: Truth) -> None:
    model = Net()
    optimizer = sgd(model)
    for x, y in loader():

        def closure(x: torch.Tensor = x, y: torch.Tensor = y) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, x, y)
            loss.backward()
            return loss

        optimizer.step(closure)
        truth.step(len(x))


def gan(truth: Truth) -> None:
    generator, critic = Net(WIDTH, sleep=0.002), Net(1, sleep=0.001)
    optimizers = sgd(critic), sgd(generator)
    for x, _ in loader():
        optimizers[0].zero_grad()
        critic(x).mean().backward()
        fake = generator(torch.randn(len(x), WIDTH))
        critic(fake.detach()).mean().neg().backward()
        optimizers[0].step()
        truth.step(len(x))
        optimizers[1].zero_grad()
        critic(fake).mean().backward()
        optimizers[1].step()


def critic_steps(truth: Truth) -> None:
    """The critic steps five times for each step of the generator, which steps first."""
    generator, critic = Net(WIDTH, sleep=0.002), Net(1, sleep=0.001)
    critic_optimizer, generator_optimizer = sgd(critic), sgd(generator)
    for index, (x, _) in enumerate(loader()):
        if index % 5 == 0:
            generator_optimizer.zero_grad()
            critic(generator(torch.randn(len(x), WIDTH))).mean().backward()
            generator_optimizer.step()
        critic_optimizer.zero_grad()
        with torch.no_grad():
            fake = generator(torch.randn(len(x), WIDTH))
        (critic(x).mean() - critic(fake).mean()).backward()
        critic_optimizer.step()
        truth.step(len(x))


def two_parts(truth: Truth) -> None:
    encoder, decoder = Net(WIDTH, sleep=0.002), Net(1, sleep=0.002)
    optimizers = sgd(encoder), sgd(decoder)
    for x, y in loader():
        for optimizer in optimizers:
            optimizer.zero_grad()
        torch.nn.functional.mse_loss(decoder(encoder(x)), y).backward()
        optimizers[0].step()
        truth.step(len(x))
        optimizers[1].step()


def replaced_optimizer(truth: Truth) -> None:
    """Both optimizers stay alive; the second takes over."""
    model = Net()
    for optimizer in [sgd(model), torch.optim.Adam(model.parameters())]:
        for x, y in loader():
            optimizer.zero_grad()
            loss_of(model, x, y).backward()
            optimizer.step()
            truth.step(len(x))


def scaler(truth: Truth) -> None:
    model = Net()
    optimizer = sgd(model)
    scaled = torch.amp.GradScaler("cpu", init_scale=2.0**4)
    for index, (x, y) in enumerate(loader()):
        optimizer.zero_grad()
        loss = loss_of(model, x, y) * (float("inf") if index in (0, 7, 8) else 1.0)
        scaled.scale(loss).backward()
        scaled.step(optimizer)
        before = scaled.get_scale()
        scaled.update()
        truth.step(len(x), skipped=scaled.get_scale() < before)


def scaler_fused(truth: Truth) -> None:
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    scaled = torch.amp.GradScaler("cpu", init_scale=2.0**4)
    for index, (x, y) in enumerate(loader()):
        optimizer.zero_grad()
        loss = loss_of(model, x, y) * (float("inf") if index in (0, 7, 8) else 1.0)
        scaled.scale(loss).backward()
        scaled.step(optimizer)
        before = scaled.get_scale()
        scaled.update()
        truth.step(len(x), skipped=scaled.get_scale() < before)


def optimizer_in_backward(truth: Truth) -> None:
    model = Net()
    for p in model.parameters():
        optimizer = torch.optim.SGD([p], lr=0.01)

        def update(p: torch.Tensor, optimizer: torch.optim.Optimizer = optimizer) -> None:
            optimizer.step()
            optimizer.zero_grad()

        p.register_post_accumulate_grad_hook(update)
    for x, y in loader():
        loss_of(model, x, y).backward()
        truth.step(len(x))


if __name__ == "__main__":
    truth = Truth()
    globals()[sys.argv[1]](truth)
    truth.tell()
