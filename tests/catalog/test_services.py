"""Tables of API prices, and what managed services add."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from underdog.catalog import services
from underdog.core.services import Api
from underdog.errors import CatalogError


def written(folder: Path, text: str, name: str = "apis.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_toml_and_csv_say_the_same(tmp_path: Path) -> None:
    toml = written(
        tmp_path,
        """
        [[api]]
        name = "acme"
        per_million_input_tokens = 0.5
        per_million_output_tokens = 1.5
        source = "price list"
        date = 2026-11-01
        """,
    )
    csv = written(
        tmp_path,
        "name,per_million_input_tokens,per_million_output_tokens,per_request,source,date\n"
        "acme,0.5,1.5,,price list,2026-11-01\n",
        "apis.csv",
    )
    expected = Api(
        name="acme",
        per_million_input_tokens=0.5,
        per_million_output_tokens=1.5,
        source="price list",
        date=datetime.date(2026, 11, 1).isoformat(),
    )
    assert services.apis(toml) == services.apis(csv) == [expected]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[api]]\nper_request = 1", "row 1, name: it is empty"),
        ('[[api]]\nname = "a"', "row 1, per_million_tokens: it has no price at all"),
        ('[[api]]\nname = "a"\nper_request = 0', "0 is not a value that can be"),
        ('[[api]]\nname = "a"\nper_request = nan', "'nan' is not a positive finite number"),
        ('[[api]]\nname = "a"\nper_request = -1', "'-1' is not a positive finite number"),
        ('[[api]]\nname = "a"\nper_reqest = 1', "per_reqest: there is no such field. Did you mean"),
        (
            '[[api]]\nname = "a"\nper_million_tokens = 1\nper_million_input_tokens = 1',
            "it is for all tokens, and others are for some",
        ),
        (
            '[[api]]\nname = "a"\nper_request = 1\n[[api]]\nname = "a"\nper_request = 2',
            "row 2, name: 'a' stands there twice",
        ),
        ("", "There is no API in"),
        ("api = 3", "has no tables [[api]]"),
        ("name = ", "Cannot read the API prices"),
    ],
)
def test_what_cannot_be_taken_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CatalogError) as caught:
        services.apis(written(tmp_path, text))
    assert said in str(caught.value)


def test_all_faults_of_a_file_are_told_together(tmp_path: Path) -> None:
    rows = "name,per_request,colour\n,x,\nb,-2,\n"
    with pytest.raises(CatalogError) as caught:
        services.apis(written(tmp_path, rows, "a.csv"))
    text = str(caught.value)
    assert all(part in text for part in ("row 1, name", "'x' is not a number", "row 2", "colour"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="No such file"):
        services.apis(tmp_path / "none.toml")


def test_services_with_known_factors_have_a_source_and_a_day() -> None:
    for service in services.managed():
        assert service.factor > 0
        assert service.source
        assert datetime.date.fromisoformat(service.date)


def test_the_table_of_the_guide_can_be_taken(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "compare-services.md"
    text = page.read_text().split("```toml\n")[1].split("```")[0]
    small, vision = services.apis(written(tmp_path, text))
    assert small.by_tokens
    assert vision.per_request == 0.002
