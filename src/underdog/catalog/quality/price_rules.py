"""Rules that compare the price of an offer with those of others."""

from __future__ import annotations

from collections.abc import Sequence

from underdog.catalog.quality import limits
from underdog.catalog.quality.rules import Rule

# What the bounds compare with, made anew whenever offers were taken out.
REFERENCES = {
    # What one accelerator usually costs, bought so. Every provider has one voice, however many
    # regions it has; providers that are not at hand speak by their prices of the snapshot before.
    "market": f"""
        WITH priced AS (
            SELECT provider, accelerator, market, purchase, per_accelerator FROM live
            UNION ALL
            SELECT provider, accelerator, market, purchase, per_accelerator FROM before
            WHERE provider NOT IN (SELECT provider FROM given WHERE provider IS NOT NULL)
        ), voices AS (
            SELECT accelerator, market, provider, median(per_accelerator) AS usual FROM priced
            WHERE per_accelerator > 0 AND purchase <> 'reserved' GROUP BY ALL
        ), medians AS (
            SELECT accelerator, market, median(usual) AS usual FROM voices GROUP BY ALL
        )
        SELECT accelerator, market, max(usual) AS usual FROM (
            SELECT accelerator, market, usual FROM medians
            UNION ALL
            SELECT accelerator, 'spot', usual * {limits.SPOT_SHARE} FROM medians
            WHERE market = 'on-demand'
        ) GROUP BY ALL
    """,
    # what a plain machine of a family usually costs
    "families": """
        SELECT provider, family, market, median(price / nodes / vcpus) AS by_vcpu,
            median(price / nodes / memory) AS by_gib
        FROM live WHERE count = 0 AND price > 0 AND purchase <> 'reserved' GROUP BY ALL
    """,
    # what a vCPU of the cheaper plain machines costs in a region, by the memory for each
    "hosts": """
        SELECT provider, region, market, arch, round(log2(memory / vcpus)) AS shape,
            quantile_cont(price / nodes / vcpus, 0.25) AS vcpu
        FROM live
        WHERE count = 0 AND price > 0 AND vcpus > 0 AND memory > 0 AND purchase <> 'reserved'
        GROUP BY ALL
    """,
}
_SHARE = f"CASE WHEN purchase = 'reserved' THEN {limits.RESERVED_SHARE} ELSE 1 END"
_OF_ACCELERATOR = """
    SELECT row, shown(per_accelerator) || ' USD/h for one ' || accelerator
        || ', which usually costs ' || shown(usual) AS message
    FROM live JOIN market USING (accelerator, market) WHERE
"""
# by vCPU and by GiB: in a family of burstable machines only one of the two is even
_OF_FAMILY = """
    SELECT row, shown(price) || ' USD/h, that is ' || shown(price / nodes / vcpus)
        || ' for a vCPU; its family usually costs ' || shown(by_vcpu) AS message
    FROM live JOIN families USING (provider, family, market) WHERE count = 0 AND
"""
# how it is sold
_SOLD = ("provider", "purchase", "term", "service", "accelerator")


def _alike(other: str, names: Sequence[str]) -> str:
    """A condition for a join: NULL is a value of its own."""
    return " AND ".join(f"{other}.{name} IS NOT DISTINCT FROM l.{name}" for name in names)


BOUNDS = (
    Rule(
        name="accelerator_price_too_low",
        severity="quarantine",
        says="its price is under a tenth of what its accelerator usually costs",
        remedy="Look the price up: it is a bid floor, a host alone, or of another unit.",
        query=f"{_OF_ACCELERATOR} per_accelerator < usual * {_SHARE} / {limits.PRICE_FACTOR}",
    ),
    Rule(
        name="family_price_too_low",
        severity="quarantine",
        says="its price is under a tenth of what its family usually costs",
        remedy="Look the price up in the provider's own list.",
        query=f"""
            {_OF_FAMILY} price / nodes / vcpus < by_vcpu * {_SHARE} / {limits.PRICE_FACTOR}
            AND price / nodes / memory < by_gib * {_SHARE} / {limits.PRICE_FACTOR}
        """,
    ),
    Rule(
        name="price_of_one_accelerator",
        severity="quarantine",
        says="the price of one accelerator stands as that of the machine",
        remedy="Multiply it by their number where the source is read.",
        query=f"""
            WITH singles AS (
                SELECT place, {", ".join(_SOLD)}, min(price / nodes) AS one,
                    min_by(vcpus, price / nodes) AS host
                FROM live WHERE count = 1 AND price > 0 GROUP BY ALL
            ), anywhere AS (
                SELECT {", ".join(_SOLD)}, min(one) AS one, min_by(host, one) AS host
                FROM singles GROUP BY ALL
            )
            SELECT row, shown(price) || ' USD/h for ' || shown(count) || ' ' || l.accelerator
                || ', and one alone costs ' || shown(coalesce(s.one, a.one)) AS message
            FROM live AS l JOIN anywhere AS a ON {_alike("a", _SOLD)}
            LEFT JOIN singles AS s ON s.place = l.place AND {_alike("s", _SOLD)}
            WHERE count >= {limits.SINGLES_FROM}
                AND price / nodes < {limits.SINGLES} * coalesce(s.one, a.one)
                AND coalesce(vcpus >= coalesce(s.host, a.host), TRUE)
        """,
    ),
    Rule(
        name="host_only_price",
        severity="quarantine",
        says="it has the price of its host without the accelerator",
        remedy="Add the accelerator's price where the source is read.",
        query=f"""
            SELECT row, shown(price) || ' USD/h, and a plain machine of its size costs '
                || shown(vcpu * vcpus) || '; one ' || accelerator || ' usually costs '
                || shown(usual) AS message
            FROM live JOIN market USING (accelerator, market)
            JOIN hosts USING (provider, region, market, arch)
            WHERE vcpus > 0 AND memory > 0 AND shape = round(log2(memory / vcpus))
                AND per_accelerator < {limits.ACCELERATOR_PRICE} * {_SHARE} * usual
                AND (price / nodes - vcpu * vcpus) / count < {limits.ACCELERATOR_SHARE} * usual
        """,
    ),
)

# looked for once nothing else is out of bounds: the lowest price of a family is what it rests on
WINDOWS = Rule(
    name="windows_price",
    severity="quarantine",
    says="it has the price of a machine with Windows",
    remedy="Leave the meters of Windows out where the source is read.",
    query=f"""
        WITH lines AS MATERIALIZED (
            SELECT instance_type, regexp_replace(instance_type, '[0-9]+(-[0-9]+)?', '#')
                AS line, CAST(regexp_extract(instance_type, '[0-9]+') AS DOUBLE) AS whole
            FROM (SELECT DISTINCT instance_type FROM live WHERE provider = 'azure')
            WHERE regexp_matches(instance_type, '_[A-Z]+[1-9]')
        ), rates AS (
            SELECT row, price / whole AS rate,
                hash(place, purchase, term, service, line) AS line
            FROM live JOIN lines USING (instance_type)
            WHERE provider = 'azure' AND count = 0 AND price > 0
        ), lowest AS (
            SELECT *, min(rate) OVER (PARTITION BY line) AS low FROM rates
        ), told AS (
            SELECT *, rate <= low * {1 + limits.RATE_TOLERANCE} AS plain,
                abs(rate - low - {limits.WINDOWS_PER_VCPU}) <= {limits.WINDOWS_TOLERANCE}
                AS windows
            FROM lowest
        )
        SELECT row, shown(rate) || ' USD/h for a vCPU, others of its family ' || shown(low)
            || ': the difference is the licence of Windows' AS message
        FROM told WINDOW same AS (PARTITION BY line)
        QUALIFY windows AND count(*) OVER same >= 3 AND count(*) FILTER (plain OR windows)
            OVER same >= {limits.RATE_SHARE} * count(*) OVER same
    """,
)

# the offers that stand there several times
DOUBLES = (
    "SELECT * FROM live WHERE offer IN (SELECT offer FROM live GROUP BY offer HAVING count(*) > 1)"
)
# of the same offer the cheapest comes first; the order in which they were given says nothing
_SAME = (
    "PARTITION BY offer, coalesce(service, '') "
    "ORDER BY price NULLS LAST, names, reason, date, vcpus, memory, count, each, usable, row"
)

TWO_PRICES = Rule(
    name="two_prices",
    severity="caveat",
    says="the source has several prices for it, of which the lowest stands",
    remedy="Look the price up.",
    query=f"""
        SELECT min_by(row, place_) AS row, count(DISTINCT price) || ' prices, from '
            || shown(min(price)) || ' to ' || shown(max(price)) || ' USD/h' AS message
        FROM (SELECT *, row_number() OVER ({_SAME}) AS place_ FROM doubles)
        GROUP BY offer, coalesce(service, '') HAVING count(DISTINCT price) > 1
    """,
)
DUPLICATE = Rule(
    name="duplicate_offer",
    severity="quarantine",
    says="the source has it several times",
    remedy="Nothing needs to be done: the one with the lowest price stands.",
    query=f"""
        SELECT row, CASE WHEN price IS DISTINCT FROM low
            THEN 'another of the same name costs ' || shown(low) || ' USD/h'
            ELSE 'another of the same name and price stands' END AS message
        FROM (
            SELECT *, row_number() OVER same AS place_, first_value(price) OVER same AS low
            FROM doubles WINDOW same AS ({_SAME})
        ) WHERE place_ > 1
    """,
)


def _above_on_demand(purchase: str) -> str:
    return f"""
        WITH asked AS MATERIALIZED (SELECT * FROM live WHERE purchase = '{purchase}' AND price > 0),
        listed AS (
            SELECT provider, region, instance_type, nodes, service, min(price) AS low FROM live
            WHERE purchase = 'on-demand'
                AND provider IN (SELECT provider FROM asked)
            GROUP BY ALL
        )
        SELECT row, shown(price) || ' USD/h, and on demand ' || shown(low) AS message
        FROM asked AS l JOIN listed AS s ON s.provider = l.provider AND s.region = l.region
            AND s.instance_type = l.instance_type AND s.nodes = l.nodes
            AND s.service IS NOT DISTINCT FROM l.service
        WHERE price > low * (1 + 1e-6)
    """


DOUBTS = (
    Rule(
        name="accelerator_price_too_high",
        severity="caveat",
        says="its price is over ten times what its accelerator usually costs",
        remedy="Look the price up before buying.",
        query=f"{_OF_ACCELERATOR} per_accelerator > usual * {limits.PRICE_FACTOR}",
    ),
    Rule(
        name="family_price_too_high",
        severity="caveat",
        says="its price is over ten times what its family usually costs",
        remedy="Look the price up before buying.",
        query=f"""
            {_OF_FAMILY} price / nodes / vcpus > by_vcpu * {limits.PRICE_FACTOR}
            AND price / nodes / memory > by_gib * {limits.PRICE_FACTOR}
        """,
    ),
    Rule(
        name="spot_above_on_demand",
        severity="caveat",
        says="it is dearer as spot than on demand",
        remedy="Buy it on demand: that is cheaper, and nobody takes it away.",
        query=_above_on_demand("spot"),
    ),
    Rule(
        name="reserved_above_on_demand",
        severity="caveat",
        says="it is dearer reserved than on demand",
        remedy="Buy it on demand, or look the reservation's price up.",
        query=_above_on_demand("reserved"),
    ),
    # Of a larger machine that is cheaper than a smaller one, the one at fault is that whose price
    # is further from what its family usually costs for its size there; machines with some of their
    # processors switched off (E16-4as) have no say in that.
    Rule(
        name="more_for_less",
        severity="caveat",
        says="its price does not fit its family, where a larger machine costs less",
        remedy="Look the price up in the provider's own list.",
        query=f"""
            WITH sized AS MATERIALIZED (
                SELECT row, instance_type, coalesce(count, 0) AS n, vcpus, memory, price,
                    price / coalesce(nullif(count, 0), memory) AS rate,
                    hash(provider, place, purchase, term, service, family, arch, cpu, nodes,
                        accelerator) AS line
                FROM live WHERE price > 0 AND vcpus > 0 AND memory > 0
            ), judged AS MATERIALIZED (
                SELECT *, abs(ln(rate / coalesce(median(rate) FILTER (
                    NOT regexp_matches(instance_type, '[0-9]-[0-9]')) OVER (PARTITION BY line),
                    median(rate) OVER (PARTITION BY line)))) AS off
                FROM sized
                QUALIFY count(*) OVER (PARTITION BY line) <= {limits.MOST_SIZES}
            ), pairs AS MATERIALIZED (
                SELECT l.row AS larger, s.row AS smaller, l.off >= s.off AS blamed,
                    l.instance_type AS more, l.price AS low, s.instance_type AS less,
                    s.price AS high
                FROM judged AS l JOIN judged AS s USING (line)
                WHERE l.n >= s.n AND l.vcpus >= s.vcpus AND l.memory >= s.memory
                    AND (l.n > s.n OR l.vcpus > s.vcpus OR l.memory > s.memory)
                    AND l.price < s.price * (1 - {limits.CHEAPER})
            )
            SELECT larger AS row, arg_max('it costs ' || shown(low) || ' USD/h, and the smaller '
                || less || ' ' || shown(high), (high, less)) AS message
            FROM pairs WHERE blamed GROUP BY larger
            UNION ALL
            SELECT smaller, arg_min('it costs ' || shown(high) || ' USD/h, and the larger '
                || more || ' ' || shown(low), (low, more))
            FROM pairs WHERE NOT blamed GROUP BY smaller
        """,
    ),
)

RULES = (*BOUNDS, WINDOWS, TWO_PRICES, DUPLICATE, *DOUBTS)
