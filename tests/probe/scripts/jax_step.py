"""A jitted training step with optax, a last short batch, and an evaluation every few steps."""

import json
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

WIDTH, BATCH, SAMPLES, EPOCHS = 256, 32, 32 * 25 + 7, 4
rng = np.random.default_rng(0)
data = rng.normal(size=(SAMPLES, WIDTH)).astype("float32")
target = rng.normal(size=(SAMPLES, 1)).astype("float32")
parameters = {
    "a": jnp.asarray(rng.normal(size=(WIDTH, 4 * WIDTH)).astype("float32") * 0.05),
    "b": jnp.asarray(rng.normal(size=(4 * WIDTH, 1)).astype("float32") * 0.05),
}
optimizer = optax.adam(1e-3)
state = optimizer.init(parameters)


def loss_of(parameters, x, y):
    return jnp.mean((jnp.tanh(x @ parameters["a"]) @ parameters["b"] - y) ** 2)


@jax.jit
def step(parameters, state, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
    updates, state = optimizer.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state, loss


evaluate = jax.jit(loss_of)
steps = samples = 0
ends, losses, paused = [], [], 0.0
for _ in range(EPOCHS):
    for i in range(0, SAMPLES, BATCH):
        x, y = data[i : i + BATCH], target[i : i + BATCH]
        parameters, state, loss = step(parameters, state, x, y)
        losses.append(float(loss))
        steps, samples = steps + 1, samples + len(x)
        ends.append(time.perf_counter())
    start = time.perf_counter()
    for i in range(0, SAMPLES, BATCH):
        float(evaluate(parameters, data[i : i + BATCH], target[i : i + BATCH]))
    paused += time.perf_counter() - start
print(
    json.dumps(
        {
            "pid": os.getpid(),
            "steps": steps,
            "samples": samples,
            "ends": ends,
            "losses": losses[-3:],
            "parameters": WIDTH * 4 * WIDTH + 4 * WIDTH,
            "evaluation": paused,
        }
    )
)
