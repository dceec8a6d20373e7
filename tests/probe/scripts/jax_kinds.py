"""JAX training loops of many kinds; ``python jax_kinds.py KIND`` prints its own count."""

import functools
import itertools
import json
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

KIND = sys.argv[1]
WIDTH, BATCH, STEPS = 64, 16, 40
rng = np.random.default_rng(0)
xs = rng.normal(size=(STEPS * BATCH, WIDTH)).astype("float32")
ys = rng.normal(size=(STEPS * BATCH, 1)).astype("float32")
weights = {"w": jnp.zeros((WIDTH, 1)), "b": jnp.zeros((1,))}
optimizer = optax.sgd(0.01, momentum=0.9)
count = {"steps": 0, "samples": 0}


def loss_of(weights, x, y):
    return jnp.mean((x @ weights["w"] + weights["b"] - y) ** 2)


def batches():
    for i in range(STEPS):
        yield xs[i * BATCH : (i + 1) * BATCH], ys[i * BATCH : (i + 1) * BATCH]


def counted(x, step=1):
    count["steps"] += step
    count["samples"] += len(x)


def descend(weights, gradients):
    return jax.tree_util.tree_map(lambda w, g: w - 0.01 * g, weights, gradients)


def plain():
    """Donated state, a static argument, a keyword batch, and no loss that is waited for."""

    @functools.partial(jax.jit, static_argnames=("rate",), donate_argnums=(0,))
    def step(weights, *, batch, rate):
        gradients = jax.grad(loss_of)(weights, batch["x"], batch["y"])
        return jax.tree_util.tree_map(lambda w, g: w - rate * g, weights, gradients)

    state = weights
    for x, y in batches():
        state = step(state, batch={"x": x, "y": y}, rate=0.01)
        counted(x)
    jax.block_until_ready(state)


def split():
    """Gradients in one compiled function, the update outside of any."""
    gradient = jax.jit(jax.value_and_grad(loss_of))
    state = weights
    for x, y in batches():
        _, gradients = gradient(state, x, y)
        state = descend(state, gradients)
        counted(x)


def accumulate():
    """Four gradients, then one update by optax in a function of its own."""
    gradient = jax.jit(jax.grad(loss_of))

    @jax.jit
    def update(weights, state, gradients):
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state

    current, state, total = weights, optimizer.init(weights), None
    for i, (x, y) in enumerate(batches(), 1):
        new = gradient(current, x, y)
        total = new if total is None else jax.tree_util.tree_map(jnp.add, total, new)
        counted(x, 0)
        if i % 4 == 0:
            current, state = update(current, state, total)
            total = None
            count["steps"] += 1


def eager():
    """Nothing is compiled."""
    state = weights
    for x, y in batches():
        _, gradients = jax.value_and_grad(loss_of)(state, x, y)
        state = descend(state, gradients)
        counted(x)


def nested():
    """A compiled gradient that was used before inside of a compiled step; a method as the step."""
    gradient = jax.jit(jax.grad(loss_of))

    class Trainer:
        @functools.partial(jax.jit, static_argnums=0)
        def step(self, weights, x, y):
            return descend(weights, gradient(weights, x, y))

    trainer, state = Trainer(), weights
    jax.jit(loss_of)(state, xs[:4], ys[:4])
    for x, y in batches():
        state = trainer.step(state, x, y)
        counted(x)


def ahead():
    """Compiled ahead of time."""

    def step(weights, x, y):
        return descend(weights, jax.grad(loss_of)(weights, x, y))

    compiled = jax.jit(step).lower(weights, xs[:BATCH], ys[:BATCH]).compile()
    state = weights
    for x, y in batches():
        state = compiled(state, x, y)
        counted(x)


def gan():
    """Two training functions in turns: one cycle is a step."""

    @jax.jit
    def first(a, b, x, y):
        return descend(a, jax.grad(loss_of)(a, x, y)), loss_of(b, x, y)

    @jax.jit
    def second(a, b, x, y):
        return descend(b, jax.grad(loss_of)(b, x, -y)), loss_of(a, x, y)

    a = b = weights
    for x, y in batches():
        a, _ = first(a, b, x, y)
        b, _ = second(a, b, x, y)
        counted(x)


def mapped():
    """jax.pmap over the devices of this process."""
    devices = jax.local_device_count()

    @functools.partial(jax.pmap, axis_name="d")
    def step(weights, x, y):
        gradients = jax.lax.pmean(jax.grad(loss_of)(weights, x, y), "d")
        return descend(weights, gradients)

    state = jax.tree_util.tree_map(lambda w: jnp.stack([w] * devices), weights)
    for x, y in batches():
        shape = (devices, BATCH // devices)
        state = step(state, x.reshape(*shape, WIDTH), y.reshape(*shape, 1))
        counted(x)


def nnx():
    """Flax's modules and optimizer, with a compiled evaluation at the end of each ten steps."""
    from flax import nnx as flax

    model = flax.Linear(WIDTH, 1, rngs=flax.Rngs(0))
    trainer = flax.Optimizer(model, optimizer, wrt=flax.Param)

    @flax.jit
    def step(model, trainer, x, y):
        def loss_of(model):
            return jnp.mean((model(x) - y) ** 2)

        loss, gradients = flax.value_and_grad(loss_of)(model)
        trainer.update(model, gradients)
        return loss

    @flax.jit
    def evaluate(model, x, y):
        return jnp.mean((model(x) - y) ** 2)

    for i, (x, y) in enumerate(batches(), 1):
        step(model, trainer, x, y)
        counted(x)
        if i % 10 == 0:
            float(evaluate(model, x, y))


def slow():
    """Steps that last, dispatched ahead and waited for once in 40."""

    @jax.jit
    def step(weights, x, y):
        big = jnp.tanh(jnp.ones((500, 500)) * x[0, 0])
        for _ in range(4):
            big = jnp.tanh(big @ big)
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        return descend(weights, gradients), loss + 0 * big[0, 0]

    state = weights
    marks = []
    for i, (x, y) in enumerate(itertools.islice(itertools.cycle(batches()), 10 + 5 * STEPS)):
        if i >= 10 and (i - 10) % STEPS == 0:
            jax.block_until_ready(state)
            marks.append((i, time.perf_counter()))
        state, _ = step(state, x, y)
        counted(x)
    jax.block_until_ready(state)
    count["marks"] = [*marks, (i + 1, time.perf_counter())]


def scanned():
    """Several steps in one call."""

    @jax.jit
    def run(weights, x, y):
        def body(weights, batch):
            return descend(weights, jax.grad(loss_of)(weights, *batch)), 0.0

        return jax.lax.scan(body, weights, (x, y))[0]

    state = weights
    for x, y in batches():
        state = run(state, x.reshape(4, 4, WIDTH), y.reshape(4, 4, 1))
        counted(x)


globals()[KIND]()
print(json.dumps({"pid": os.getpid(), **count}))
