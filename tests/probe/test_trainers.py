"""Loops that a training library runs: Lightning, transformers, accelerate."""

from __future__ import annotations

from pathlib import Path

import pytest
from observed import check, observe

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


@pytest.mark.parametrize(
    ("library", "kind"),
    [
        ("accelerate", "accelerate_loop"),
        ("accelerate", "accelerate_stopped"),
        ("lightning", "lightning_loop"),
        ("lightning", "lightning_accumulation"),
        ("transformers", "transformers_loop"),
        ("transformers", "transformers_accumulation"),
        ("transformers", "transformers_stopped"),
    ],
)
def test_trainers(library: str, kind: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    check(observe(["trainers.py", kind], tmp_path / "records"))
