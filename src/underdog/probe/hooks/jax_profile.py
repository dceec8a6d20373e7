"""What a training function of JAX asks of any machine, from its trace."""

from __future__ import annotations

import math
import os
import time
from typing import Any

from ._software import environment, libraries

LOOKED_AT = 3  # the call that is profiled


class Profiler:
    """Profiles each training function at its third call, and sums them: a GAN has two.

    The time that it takes is a pause of the kind ``profile``.

    Args:
        jax: the module.
        recorder: where the records go.
        frames: holds a workload while its function is traced.
    """

    def __init__(self, jax: Any, recorder: Any, frames: Any) -> None:
        self._jax, self._recorder, self._frames = jax, recorder, frames
        self._calls: dict[int, int] = {}
        self._known: dict[str, Any] = {}
        self._wanted = os.environ.get("UNDERDOG_PROFILE") != "0"

    def look_at(self, workload: Any, target: Any, args: Any, kwargs: Any) -> None:
        """A training function was called with these arguments."""
        times = self._calls[id(workload)] = self._calls.get(id(workload), 0) + 1
        if times != LOOKED_AT or not self._wanted:
            return
        start, depth = time.perf_counter(), len(self._frames)
        try:
            self._profile(workload, target, args, kwargs)
        except Exception as error:
            del self._frames[depth:]
            self._recorder.note(
                "profile_incomplete",
                f"the training function could not be profiled: {type(error).__name__}: {error}"[
                    :300
                ],
                "predictions for other machines will be wider; measure on those that matter",
            )
        self._recorder.pause("profile", start, time.perf_counter())

    def _profile(self, workload: Any, target: Any, args: Any, kwargs: Any) -> None:
        if not self._known:
            self._recorder.write("software", libraries=libraries(), settings=settings(self._jax))
        trace = None
        if hasattr(target, "trace"):
            # what was given away to the call has no data left, but still its shape
            self._frames.append(workload)
            trace = target.trace(*args, **kwargs)
            self._frames.pop()
        samples = workload.finder.samples(args, kwargs, None)
        found = fields(self._jax, workload, trace, samples)
        for name in ("parameters", "parameter_bytes", "gradient_bytes", "flops_per_sample"):
            if name in self._known and name in found:
                found[name] += self._known[name]
        self._known = {**self._known, **found}
        self._recorder.write("profile", **self._known)


def settings(jax: Any) -> dict[str, Any]:
    """What decides about speed and number formats."""
    names = ("jax_default_matmul_precision", "jax_enable_x64", "jax_compilation_cache_dir")
    found = {name: getattr(jax.config, name, None) for name in names}
    found["platform"] = jax.default_backend()
    found["devices"] = jax.device_count()
    found["environment"] = environment()
    return {name: value for name, value in found.items() if value is not None}


def fields(jax: Any, workload: Any, trace: Any, samples: Any) -> dict[str, Any]:
    """The fields of the profile record that are known."""
    platform = jax.default_backend()
    devices = jax.local_devices()
    known: dict[str, Any] = {
        "uses_accelerator": platform != "cpu",
        "accelerators_used": len(devices) if platform != "cpu" else 0,
    }
    sizes = [(math.prod(shape), dtype.itemsize) for shape, dtype in workload.parameters]
    if sizes:
        known["parameters"] = sum(n for n, _ in sizes)
        known["parameter_bytes"] = known["gradient_bytes"] = sum(n * size for n, size in sizes)
        if workload.updates:
            state = workload.finder.state_bytes - known["parameter_bytes"]
            known["optimizer_bytes"] = max(0, state)
    if trace is None:
        return known
    count = Count()
    count.add(trace.jaxpr.jaxpr, 1)
    if count.formats:
        heaviest = max(count.formats, key=lambda name: count.formats[name])
        known["number_format"] = _format(jax, heaviest, platform)
    if samples:
        known["batch_size"] = samples
        if count.complete and count.flops:
            known["flops_per_sample"] = count.flops / samples
            known["memory_traffic_bytes_per_sample"] = count.bytes / samples
    return known


def _format(jax: Any, name: str, platform: str) -> str:
    """Where no precision is asked for, accelerators round single precision to a shorter format."""
    precision = getattr(jax.config, "jax_default_matmul_precision", None)
    if name == "float32" and precision in (None, "default"):
        return {"gpu": "tf32", "cuda": "tf32", "tpu": "bfloat16"}.get(platform, name)
    return name


class Count:
    """Sums over a trace: flops (2 per multiply-add) of matrix products and convolutions, and the
    bytes of every operation's inputs and outputs, an upper estimate of the memory traffic.

    ``complete`` is false where a loop runs an unknown number of times around counted work.
    """

    def __init__(self) -> None:
        self.flops = 0.0
        self.bytes = 0.0
        self.formats: dict[str, float] = {}
        self.complete = True

    def add(self, jaxpr: Any, times: float) -> None:
        """Add a trace that is run so many times."""
        for equation in jaxpr.eqns:
            name, parameters = equation.primitive.name, equation.params
            inner = [j for value in parameters.values() for j in _traces(value)]
            if name == "cond":
                self._add_heaviest(inner, times)
            elif inner:
                often = parameters.get("length", 1) if name == "scan" else 1
                before = self.flops
                for part in inner:
                    self.add(part, times * often)
                if name == "while" and self.flops > before:
                    self.complete = False
            else:
                self._operation(name, equation, times)

    def _add_heaviest(self, branches: Any, times: float) -> None:
        counts = []
        for branch in branches:
            count = Count()
            count.add(branch, times)
            counts.append(count)
        heaviest = max(counts, key=lambda c: c.flops)
        self.flops += heaviest.flops
        self.bytes += heaviest.bytes
        self.complete &= heaviest.complete
        for name, flops in heaviest.formats.items():
            self.formats[name] = self.formats.get(name, 0) + flops

    def _operation(self, name: str, equation: Any, times: float) -> None:
        inputs = [v.aval for v in equation.invars if hasattr(v.aval, "shape")]
        outputs = [v.aval for v in equation.outvars if hasattr(v.aval, "shape")]
        self.bytes += times * sum(_bytes(a) for a in inputs + outputs)
        flops = 0.0
        if name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            depth = math.prod(inputs[0].shape[d] for d in contracted)
            flops = 2.0 * math.prod(outputs[0].shape) * depth
        elif name == "conv_general_dilated":
            flops = _convolution(equation.params, inputs, outputs)
        if flops:
            self.flops += times * flops
            kind = str(inputs[0].dtype)
            self.formats[kind] = self.formats.get(kind, 0) + times * flops


def _convolution(parameters: Any, inputs: Any, outputs: Any) -> float:
    """Each output adds up the kernel's window over its input features; an input that is spread
    out with zeros (the backward of a stride) meets only a part of it."""
    numbers = parameters["dimension_numbers"]
    kernel = inputs[1].shape
    window = math.prod(kernel[d] for d in numbers.rhs_spec[1:])
    spread = math.prod(parameters["lhs_dilation"])
    return float(2 * math.prod(outputs[0].shape) * window / spread)


def _bytes(aval: Any) -> int:
    return int(math.prod(aval.shape)) * int(getattr(aval.dtype, "itemsize", 0))


def _traces(value: Any) -> list[Any]:
    """The traces in a parameter of an operation, however they are wrapped."""
    if hasattr(value, "eqns"):
        return [value]
    if hasattr(value, "jaxpr"):
        return _traces(value.jaxpr)
    if isinstance(value, (tuple, list)):
        return [trace for v in value for trace in _traces(v)]
    return []
