"""Rules that look at one offer alone: its names and its price."""

from __future__ import annotations

from underdog.catalog.quality import limits
from underdog.catalog.quality.rules import Rule

# control characters, marks that turn the direction of text, and what opens or closes markup
_UNSAFE = r"[\x00-\x1f\x7f-\x9f\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}\x{fffd}<>]"

_NAMES = (
    Rule(
        name="nameless_offer",
        severity="quarantine",
        says="its provider, region or instance type is empty",
        remedy="Look at the source: nothing can be bought by it.",
        query="""
            SELECT row, 'provider, region and instance type must all be named' AS message FROM live
            WHERE provider IS NULL OR region IS NULL OR instance_type IS NULL
        """,
    ),
    Rule(
        name="unsafe_text",
        severity="quarantine",
        says="a name of it holds control characters or markup",
        remedy="Look at the source: it was damaged, or somebody wrote it to deceive.",
        query=f"""
            SELECT row, 'a name of it holds control characters or markup' AS message FROM live
            WHERE regexp_matches(names, '{_UNSAFE}')
        """,
    ),
    Rule(
        name="unknown_purchase",
        severity="quarantine",
        says="it is neither on-demand nor spot nor reserved",
        remedy="Map the source's word for it to one of the three.",
        query="""
            SELECT row, 'the purchase option is ' || coalesce('''' || purchase || '''', 'not given')
                AS message
            FROM live
            WHERE coalesce(purchase, '') NOT IN ('on-demand', 'spot', 'reserved')
        """,
    ),
    Rule(
        name="not_a_number",
        severity="quarantine",
        says="a column of numbers holds something else",
        remedy="Look at the columns of the source: one of them has moved.",
        query="""
            SELECT row, 'what stands in ' || broken || ' is not a number' AS message FROM live
            WHERE broken IS NOT NULL
        """,
    ),
)

_PRICES = (
    Rule(
        name="impossible_price",
        severity="quarantine",
        says="its price is zero, negative or infinite",
        remedy="Look the price up: a source writes 0 where it has none.",
        query="""
            SELECT row, 'the price is ' || shown(price) AS message FROM live
            WHERE price <= 0 OR isinf(price)
        """,
    ),
    Rule(
        name="unexplained_price",
        severity="quarantine",
        says="it has neither a price nor a reason why the price is unknown",
        remedy="Say why in the column price_unknown_reason.",
        query="""
            SELECT row, 'there is no price, and no reason why' AS message FROM live
            WHERE price IS NULL AND reason IS NULL AND broken IS NULL
        """,
    ),
    Rule(
        name="foreign_currency",
        severity="quarantine",
        says="its price is not in USD",
        remedy="Ask the provider for prices in USD.",
        query="""
            SELECT row, 'the price is in ' || currency AS message FROM live
            WHERE price IS NOT NULL AND currency <> 'USD'
        """,
    ),
    Rule(
        name="undated_price",
        severity="caveat",
        says="the day of its price is not known",
        remedy="Look the price up before relying on it.",
        query="""
            SELECT row, 'its date is ' || coalesce('''' || date || '''', 'not given') AS message
            FROM live
            WHERE price IS NOT NULL AND TRY_CAST(date AS DATE) IS NULL
        """,
    ),
    Rule(
        name="future_price",
        severity="caveat",
        says="its price is of a day to come",
        remedy="Check the clock of this machine, then: underdog catalog refresh.",
        query="""
            SELECT row, 'the price is of ' || date || ', and today is ' || today AS message
            FROM live, clock
            WHERE price IS NOT NULL AND TRY_CAST(date AS DATE) > today + 1
        """,
    ),
    Rule(
        name="stale_price",
        severity="caveat",
        says="its price is old",
        remedy="Fetch the prices of today: underdog catalog refresh.",
        query=f"""
            SELECT row, 'the price is of ' || date AS message FROM live, clock
            WHERE price IS NOT NULL AND TRY_CAST(date AS DATE) < today - CASE
                WHEN purchase = 'spot' THEN {limits.STALE_SPOT_DAYS} ELSE {limits.STALE_DAYS} END
        """,
    ),
)

RULES = (*_NAMES, *_PRICES)
