"""Settings and doubts of a PyTorch run; the faster setting is checked by putting it."""

import json
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from underdog.probe.hooks import _software, torch_faster, torch_settings  # noqa: E402

pytestmark = pytest.mark.frameworks

TIMED = """
import json, statistics, time
import torch
torch.set_num_threads({threads})
torch.manual_seed(0)
a, b, c = torch.rand(512, 256), torch.rand(1024, 256), torch.rand(1024)
seconds = []
for _ in range(15):
    start = time.perf_counter()
    out = torch.nn.functional.linear(a, b, c)
    seconds.append(time.perf_counter() - start)
exact = torch.nn.functional.linear(a.double(), b.double(), c.double())
wrong = float((out.double() - exact).abs().max() / exact.abs().max())
mine = {{("addmm", (("tensor", (1024,), (1,), "torch.float32"),
                   ("tensor", (512, 256), (256, 1), "torch.float32"),
                   ("tensor", (256, 1024), (1, 256), "torch.float32"))): [10, 10]}}
{more}
print(json.dumps([statistics.median(seconds), wrong, found, torch.get_num_threads()]))
"""
TRY = """
from underdog.probe.hooks.torch_faster import faster_setting
found = faster_setting(torch, mine, 10 * statistics.median(seconds), seconds=1.0)
"""


def timed(before="", more="found = None", threads=1, **environment):
    code = textwrap.dedent(before) + TIMED.format(threads=threads, more=more)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**_environment(), **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _environment():
    import os

    return dict(os.environ)


@pytest.mark.slow
def test_the_lines_for_onednn_speed_up_a_slow_mkl_and_cost_no_accuracy():
    slow = {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}  # as MKL does on processors it does not favour
    usual, error, found, threads = timed(more=TRY, **slow)
    if found is None:
        fast = timed(before=torch_faster.ONEDNN_LINES, **slow)[0]
        assert usual / fast < 1.4, "a faster setting exists and was not found"
        pytest.skip("MKL is not slow on this processor")
    code, message, remedy = found
    assert code == "faster_setting"
    assert threads == 1
    lines = remedy.split("script:\n")[1]
    faster, faster_error, _, _ = timed(before=lines, **slow)
    assert usual / faster > 1.2
    assert faster_error <= 2 * error + 1e-7
    assert "with the same accuracy" in message


@pytest.mark.slow
def test_too_many_threads_for_the_machine_are_found_slower_or_left_alone():
    most = int(_software.processors())
    *_, found, threads = timed(more=TRY, threads=16 * most)
    assert threads == 16 * most
    if found is not None:
        assert found[0] == "faster_setting"


def test_nothing_is_claimed_where_the_operations_are_a_small_part_of_the_step():
    key = ("mm", (("tensor", (64, 64), (64, 1), "torch.float32"),) * 2)
    assert torch_faster.faster_setting(torch, {key: [1, 1]}, 10.0, seconds=0.2) is None


def test_no_setting_is_changed_by_the_trial():
    key = ("convolution", _convolution())
    threads, enabled = torch.get_num_threads(), torch.backends.mkldnn.enabled
    torch_faster.faster_setting(torch, {key: [1, 1]}, 1e-3, seconds=0.2)
    assert (torch.get_num_threads(), torch.backends.mkldnn.enabled) == (threads, enabled)


def _convolution():
    image = ("tensor", (2, 8, 16, 16), (2048, 256, 16, 1), "torch.float32")
    kernel = ("tensor", (8, 8, 3, 3), (72, 9, 3, 1), "torch.float32")
    return (image, kernel, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)


def test_more_threads_than_processors_is_doubted():
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(int(_software.processors()) + 1)
        assert "threads_over_quota" in [c for c, *_ in torch_settings.caveats(torch, None)]
        torch.set_num_threads(1)
        assert torch_settings.caveats(torch, None) == []
    finally:
        torch.set_num_threads(threads)


def test_an_accelerator_that_is_not_used_is_said_loudly(monkeypatch):
    monkeypatch.setattr(torch_settings, "accelerators", lambda torch: 2)
    torch_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    (found,) = torch_settings.caveats(torch, uses_accelerator=False)
    assert torch_settings.caveats(torch, uses_accelerator=True) == []
    torch.set_num_threads(torch_threads)
    assert found[0] == "accelerator_unused"
    assert "NOT USED" in found[1]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000"}, [1.5]),
        ({"cpu.max": "max 100000"}, []),
        ({"job/cpu.max": "max 100000", "cpu.max": "50000 100000"}, [0.5]),
        ({"cpu/job/cpu.cfs_quota_us": "200000", "cpu/job/cpu.cfs_period_us": "100000"}, [2.0]),
        ({"cpu/job/cpu.cfs_quota_us": "-1", "cpu/job/cpu.cfs_period_us": "100000"}, []),
    ],
)
def test_processor_quotas_of_both_cgroup_versions(tmp_path, files, expected):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    own = tmp_path / "own"
    own.write_text("0::/job\n3:cpu,cpuacct:/job\n")
    assert _software._quotas(str(tmp_path), str(own)) == expected


def test_software_names_versions_and_number_formats(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    libraries, settings = torch_settings.software(torch)
    assert libraries["torch"] == str(torch.__version__)
    assert settings["float32_matmul_precision"] == torch.get_float32_matmul_precision()
    assert settings["threads"] == torch.get_num_threads()
    assert settings["environment"]["OMP_NUM_THREADS"] == "7"
    assert "SECRET_TOKEN" not in settings["environment"]
    json.dumps([libraries, settings])
