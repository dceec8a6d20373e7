"""Keras counts exactly on each backend; the hook of the backend does not count a second time."""

import statistics
from importlib.util import find_spec

import pytest
from observed import observe

if find_spec("keras") is None:  # an import would need its default backend
    pytest.skip("needs Keras", allow_module_level=True)

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]
KINDS = ("fit", "several", "generator", "dataset", "loader", "single", "custom")


@pytest.fixture(params=["torch", "jax", "tensorflow"])
def run(request, tmp_path):
    backend = request.param
    if find_spec(backend) is None:
        pytest.skip(f"needs {backend}")

    def run_script(kind):
        if kind == "several" and backend == "torch":
            pytest.skip("Keras takes one step per execution there")
        environment = {"KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"}
        seen = observe(["keras_kinds.py", kind], tmp_path, environment=environment, profile=True)
        assert seen.returncode == 0, seen.stderr
        assert seen.only.about["backend"] == backend
        return seen.truths[0], seen.only

    return run_script


@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_samples_are_exact(run, kind):
    truth, process = run(kind)
    assert (len(process.steps), process.samples) == (truth["steps"], truth["samples"])
    assert process.about["framework"] == "keras"


@pytest.mark.parametrize("kind", ["fit", "single"])
def test_validation_is_a_pause(run, kind):
    _, process = run(kind)
    assert process.paused("evaluation") > 0
    assert sum(r["pause"] == "evaluation" for r in process.of("pause")) >= 2


def test_the_rate_is_that_of_an_independent_count(run):
    truth, process = run("rate")
    ours, theirs = [step[1] for step in process.steps], truth["ends"]
    assert len(ours) == len(theirs) == 256
    ratios = [
        (ours[end] - ours[end - 50]) / (theirs[end] - theirs[end - 50])
        for end in range(55, 256, 50)
    ]
    # the median: what else the machine does may come between the two looks at the clock
    assert statistics.median(ratios) == pytest.approx(1, rel=0.02)
