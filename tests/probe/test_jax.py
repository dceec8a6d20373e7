"""JAX loops of many kinds are counted exactly, and as fast as they say they are."""

import itertools
import statistics

import pytest
from observed import observe

pytest.importorskip("jax", reason="needs JAX")
pytest.importorskip("optax", reason="needs optax")

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


CPU = {"JAX_PLATFORMS": "cpu"}


@pytest.fixture
def run(tmp_path):
    def run_script(*arguments, **environment):
        seen = observe(arguments, tmp_path, environment=CPU | environment, profile=True)
        assert seen.returncode == 0, seen.stderr
        return seen.truths[0], seen.only

    return run_script


@pytest.mark.parametrize(
    "kind", ["plain", "split", "accumulate", "eager", "nested", "ahead", "gan"]
)
def test_steps_and_samples_are_exact(run, kind):
    truth, process = run("jax_kinds.py", kind)
    assert (len(process.steps), process.samples) == (truth["steps"], truth["samples"])
    assert process.about["framework"] == "jax"


def test_flax_modules_are_counted_and_their_evaluation_is_not(run):
    pytest.importorskip("flax", reason="needs Flax")
    truth, process = run("jax_kinds.py", "nnx")
    assert (len(process.steps), process.samples) == (truth["steps"], truth["samples"])
    assert process.of("profile")[-1]["parameters"] == 65


def test_samples_of_all_devices_are_summed(run):
    flags = "--xla_force_host_platform_device_count=2"
    truth, process = run("jax_kinds.py", "mapped", XLA_FLAGS=flags)
    assert (len(process.steps), process.samples) == (truth["steps"], truth["samples"])


def test_a_loop_inside_a_compiled_function_is_doubted(run):
    truth, process = run("jax_kinds.py", "scanned")
    assert process.samples == truth["samples"]
    assert "steps_inside_jit" in process.notes


def test_the_last_short_batch_counts_and_evaluation_is_a_pause(run):
    truth, process = run("jax_step.py")
    assert (len(process.steps), process.samples) == (truth["steps"], truth["samples"])
    assert len([r for r in process.of("pause") if r["pause"] == "evaluation"]) == 3
    assert process.paused("evaluation") <= truth["evaluation"] * 1.1
    profile = process.of("profile")[-1]
    assert profile["parameters"] == truth["parameters"]
    width, hidden = 256, 1024
    # forward and the gradient of the weights for both layers, that of the input for the last
    assert profile["flops_per_sample"] == pytest.approx(
        2 * (2 * width * hidden + 3 * hidden), rel=0.02
    )


def test_the_rate_is_that_of_the_device_not_of_the_dispatch(run):
    truth, process = run("jax_kinds.py", "slow")
    ends = [step[1] for step in process.steps]
    blocks = [(count - 1, mark) for count, mark in truth["marks"]]
    ratios = [
        (ends[last] - ends[first]) / (after - before)
        for (first, before), (last, after) in itertools.pairwise(blocks)
    ]
    # the median: what else the machine does may come between the two looks at the clock
    assert statistics.median(ratios) == pytest.approx(1, rel=0.02)
