"""The profile of a PyTorch step: against formulas, against measured memory, and without a trace."""

import random
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
np = pytest.importorskip("numpy")

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from torch import nn  # noqa: E402
from train_gpt import GPT  # noqa: E402

from underdog.probe.hooks.torch_profile import StepShapes, profile_step  # noqa: E402

pytestmark = pytest.mark.frameworks


def profiled(module, *inputs, samples=None, optimizers=(), autocast=None, **options):
    shapes = StepShapes(torch)
    with torch.autocast("cpu", dtype=autocast, enabled=autocast is not None):
        shapes.see(module, inputs, options)
    return profile_step(torch, shapes, optimizers, samples or len(inputs[0]))


def tokens(batch, length):
    return torch.zeros(batch, length, dtype=torch.long)


@pytest.mark.parametrize(("layers", "width", "length"), [(2, 64, 32), (6, 192, 128)])
def test_flops_of_a_gpt_follow_the_formula_of_nanogpt(layers, width, length):
    model = GPT(length, width, layers, heads=4)
    # 6 N + 12 L H Q T per token (PaLM, appendix B), N without the two embeddings, which are looked
    # up and not multiplied here
    looked_up = model.tokens.weight.numel() + model.places.weight.numel()
    weights = sum(p.numel() for p in model.parameters()) - looked_up
    expected = (6 * weights + 12 * layers * width * length) * length
    result = profiled(model, tokens(4, length))
    assert result.notes == []
    assert result.fields["flops_per_sample"] == pytest.approx(expected, rel=0.02)
    assert result.fields["parameters"] == weights + looked_up


def test_flops_of_convolutions_follow_their_formula():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2))
    size = 32
    out = (size - 3) // 2 + 1
    first, second = 2 * 27 * 8 * size**2, 2 * 72 * 16 * out**2
    fields = profiled(model, torch.zeros(5, 3, size, size)).fields
    assert fields["forward_flops_per_sample"] == first + second
    # backward: the gradient of the weights for both, that of the input for the second only
    assert fields["flops_per_sample"] == pytest.approx(2 * first + 3 * second, rel=0.02)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_flops_of_recurrent_layers_follow_their_formula(kind):
    gates = 4 if kind is nn.LSTM else 3
    result = profiled(kind(32, 64, batch_first=True), torch.zeros(6, 10, 32))
    assert result.fields["forward_flops_per_sample"] == pytest.approx(
        2 * gates * 64 * (32 + 64) * 10, rel=0.02
    )


def test_what_the_optimizer_holds_is_counted():
    model = nn.Linear(30, 20)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(3, 30)).sum().backward()
    optimizer.step()
    fields = profiled(model, torch.ones(3, 30), optimizers=[optimizer]).fields
    count = 30 * 20 + 20
    assert fields["parameters"] == count
    assert fields["parameter_bytes"] == fields["gradient_bytes"] == 4 * count
    assert fields["optimizer_bytes"] == 2 * 4 * count + 2 * 4  # and a step counter per tensor
    assert fields["batch_size"] == 3
    assert fields["input_shapes"] == [[3, 30]]
    assert fields["uses_accelerator"] is False
    assert fields["accelerators_used"] == 0


@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
def test_activations_are_those_that_autograd_keeps_in_a_real_run(autocast):
    model = GPT(64, 96, 3, heads=4)
    x = tokens(4, 64)
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (storage.nbytes(), storage)
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", dtype=autocast, enabled=autocast is not None),
    ):
        out = model(x)
    real = sum(size for size, _ in kept.values())
    fields = profiled(model, x, autocast=autocast).fields
    assert fields["activation_bytes"] == pytest.approx(real, rel=0.02)
    assert fields["number_format"] == ("float32" if autocast is None else "bfloat16")
    del out


def test_calls_of_one_step_add_up_and_those_without_gradients_go_forward_only():
    teacher, student = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
    x = torch.ones(4, 8)
    shapes = StepShapes(torch)
    with torch.no_grad():
        shapes.see(teacher, (x,), {})
    for _ in range(3):  # micro-batches
        shapes.see(student, (x,), {})
    fields = profile_step(torch, shapes, [], 12).fields
    product = 2 * 8 * 8
    assert fields["flops_per_sample"] == pytest.approx((4 * product + 12 * 2 * product) / 12)


def test_a_model_that_looks_at_its_data_is_not_guessed_at():
    class Routed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x) if x.sum() > 0 else x

    result = profiled(Routed(), torch.ones(2, 4))
    assert "flops_per_sample" not in result.fields
    assert result.fields["parameters"] == 20
    assert [code for code, *_ in result.notes] == ["profile_incomplete"]


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
def test_a_compiled_wrapper_and_arguments_of_any_shape_are_seen_through():
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.scale = torch.full((4,), 2.0)  # no buffer

        def forward(self, batch, extra=None):
            return {"y": self.layer(batch["x"][0] * self.scale), "extra": extra}

    model = Nested()
    shapes = StepShapes(torch)
    shapes.see(torch.compile(model), ({"x": [torch.ones(2, 4)]},), {"extra": object})
    result = profile_step(torch, shapes, [], 2)
    assert result.notes == []
    assert result.fields["forward_flops_per_sample"] == 2 * 4 * 4


def losses(profile):
    """Losses of a small training with dropout; with ``profile`` it is profiled in the middle."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    called = []
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(), nn.Linear(16, 1))
    model.register_forward_hook(lambda *_: called.append(1))
    optimizer = torch.optim.Adam(model.parameters())
    found = []
    for step in range(6):
        x = torch.rand(4, 8) + random.random() + np.random.rand()
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
        if profile and step == 2:
            assert not profiled(model, x, optimizers=[optimizer]).notes
    assert len(called) == 6
    return found, [p.grad.clone() for p in model.parameters()], model.state_dict()


def test_the_run_is_bit_for_bit_the_same_with_and_without():
    plain, gradients, state = losses(profile=False)
    seen, seen_gradients, seen_state = losses(profile=True)
    assert seen == plain
    assert all(torch.equal(a, b) for a, b in zip(gradients, seen_gradients, strict=True))
    assert all(torch.equal(state[name], seen_state[name]) for name in state)
