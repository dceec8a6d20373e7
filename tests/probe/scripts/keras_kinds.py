"""Keras training loops of many kinds; ``python keras_kinds.py KIND`` prints its own count.

The count is kept by a metric-free callback and by the data itself, not by what is being tested.
"""

import json
import math
import os
import sys
import time

import keras
import numpy as np

KIND = sys.argv[1]
SAMPLES, BATCH, EPOCHS = 70, 16, 3
rng = np.random.default_rng(0)
x = rng.normal(size=(SAMPLES, 8)).astype("float32")
y = rng.normal(size=(SAMPLES, 1)).astype("float32")
keras.utils.set_random_seed(0)
made = {"steps": 0, "samples": 0}


def model_of(cls=keras.Model, **options):
    inputs = keras.Input((8,))
    hidden = keras.layers.Dense(16, activation="relu")(inputs)
    model = cls(inputs, keras.layers.Dense(1)(hidden))
    model.compile(optimizer="adam", loss="mse", **options)
    return model


def whole(epochs=EPOCHS):
    made["steps"] += epochs * math.ceil(SAMPLES / BATCH)
    made["samples"] += epochs * SAMPLES


def fit():
    """With validation after each epoch and a last short batch."""
    model_of().fit(x, y, batch_size=BATCH, epochs=EPOCHS, validation_data=(x, y), verbose=0)
    whole()


def several():
    """Several steps in one execution."""
    model_of(steps_per_execution=2).fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    whole()


def generator():
    """Batches of no length known before, of different sizes."""

    def batches():
        for size in (16, 16, 9):
            yield x[:size], y[:size]

    model_of().fit(batches(), epochs=1, verbose=0)
    made.update(steps=3, samples=41)


def dataset():
    """A PyDataset."""

    class Rows(keras.utils.PyDataset):
        def __len__(self):
            return math.ceil(SAMPLES / BATCH)

        def __getitem__(self, i):
            return x[i * BATCH : (i + 1) * BATCH], y[i * BATCH : (i + 1) * BATCH]

    model_of().fit(Rows(), epochs=EPOCHS, verbose=0)
    whole()


def loader():
    """A DataLoader of PyTorch, on any backend."""
    import torch

    data = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
    model_of().fit(torch.utils.data.DataLoader(data, batch_size=BATCH), epochs=EPOCHS, verbose=0)
    whole()


def single():
    """train_on_batch in a loop of one's own, with an evaluation in the middle."""
    model = model_of()
    for _ in range(EPOCHS):
        for i in range(0, SAMPLES, BATCH):
            model.train_on_batch(x[i : i + BATCH], y[i : i + BATCH])
            made["steps"] += 1
            made["samples"] += len(x[i : i + BATCH])
        model.evaluate(x, y, verbose=0)
        model.predict(x, verbose=0)


def custom():
    """A train_step of one's own, which calls Keras's."""
    seen = []

    class Own(keras.Model):
        def train_step(self, *args):
            seen.append(1)
            return super().train_step(*args)

    model_of(Own).fit(x, y, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    assert seen
    whole()


def rate():
    """Long enough to compare rates."""
    ends = []

    class Clock(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            float(logs["loss"])
            ends.append(time.perf_counter())

    inputs = keras.Input((256,))
    hidden = keras.layers.Dense(1024, activation="relu")(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile(optimizer="adam", loss="mse")
    big = rng.normal(size=(16384, 256)).astype("float32")
    model.fit(big, big[:, :1], batch_size=64, epochs=1, verbose=0, callbacks=[Clock()])
    made.update(steps=256, samples=16384, ends=ends)


globals()[KIND]()
print(json.dumps({"pid": os.getpid(), **made}))
