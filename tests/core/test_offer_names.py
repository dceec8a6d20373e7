"""An offer has one name, whether Python or the database spells it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from underdog.core.ledger import OFFER_ID
from underdog.core.table import Table
from underdog.core.trials_offers import bare
from underdog.model import UNKNOWN, Offer, Price

WORDS = st.sampled_from([UNKNOWN, "aws", "us-east-1", "half", "it's", "a/b", "4x", ""])
OFFERS = st.builds(
    Offer,
    provider=WORDS,
    region=WORDS,
    zone=st.none() | WORDS.filter(bool),
    instance_type=WORDS,
    purchase=st.sampled_from(["on-demand", "spot", "reserved"]),
    term=st.none() | st.just("1y"),
    nodes=st.sampled_from([1, 2]),
    price=st.just(Price(per_hour=1.0)),
)


NAMES = ("provider", "region", "zone", "instance_type", "purchase", "term", "nodes")
TABLE = Table.from_arrays({})


@given(OFFERS)
def test_both_spell_it_alike(offer: Offer) -> None:
    listed = ", ".join(f"${name} AS {name}" for name in NAMES)
    values = {name: getattr(offer, name) for name in NAMES}
    sql = f"SELECT {OFFER_ID} FROM (SELECT {listed})"
    assert TABLE.connection.execute(sql, values).fetchone() == (offer.id,)


@given(st.sampled_from(["half", "lab-a100", "Ein Rechner", "名前"]))
def test_a_machine_of_ones_own_is_called_as_it_was_named(name: str) -> None:
    assert bare(name, "").offer.id == name
