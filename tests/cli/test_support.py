"""``underdog support``, and needs and services of ``underdog choose``, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from offers_and_trials import offer, trial

from underdog.cli.group import run
from underdog.store import open_store


def test_the_matrix_as_a_table_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["support", "--kind", "attention"]) == 0
    text = capsys.readouterr().out
    assert "flash-attention-3" in text
    assert "bitsandbytes" not in text
    assert run(["support", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) >= 30
    assert all(reach["source"] for row in rows for reach in row["on"])


def test_one_need_and_one_accelerator(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["support", "fa3"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("flash-attention-3: FlashAttention 3 (attention")
    assert "flash-attention README" in text
    assert run(["support", "--accelerator", "A10G", "fp64", "--json"]) == 0
    (line,) = json.loads(capsys.readouterr().out)
    assert (line["accelerator"], line["state"]) == ("A10G", "no")
    assert run(["support", "--accelerator", "A10G", "fp64"]) == 0
    assert "1/64" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["support", "flash-atention-3"], "Did you mean 'flash-attention-3'?"),
        (["support", "--kind", "atention"], "Did you mean 'attention'?"),
        (["support", "--accelerator", "A10H"], "There is no accelerator 'A10H'. Did you mean"),
        (["choose", "--tokens-per-sample", "a,b"], "'a,b' is not like 800"),
        (["choose", "--tokens-per-sample", "0"], "'0' is not like 800"),
        (["choose", "--utilisation", "50%"], "--monthly or --apis is missing"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_services_are_shown_with_their_break_even(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UNDERDOG_STORE", str(tmp_path / "store.sqlite3"))
    monkeypatch.setenv("COLUMNS", "120")
    with open_store() as opened:
        opened.save(trial())
    offers, apis = tmp_path / "offers.json", tmp_path / "apis.toml"
    offers.write_text(json.dumps([{k: v for k, v in offer().items() if v is not None}]))
    apis.write_text('[[api]]\nname = "acme"\nper_request = 1e-5\n')
    asked = ["choose", "--offers", str(offers), "--apis", str(apis)]
    assert run([*asked, "--monthly", "36e6", "--utilisation", "80%"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "36M samples a month, by service:" in text
    assert "360 10 acme per unit" in text
    assert "730 20.3 bare machine kept, 14% busy aws/us-east-1/g5.xlarge/on-demand" in text
    assert "Below 73M samples a month acme is cheaper; above, aws/us-east-1/g5.xlarge" in text
    assert run([*asked, "--samples", "36e6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["services"]
    assert found["break_even"][0]["below"] == 0
    assert run([*asked, "--samples", "36e6"]) == 0
    assert "is cheaper than acme at any volume" in " ".join(capsys.readouterr().out.split())
