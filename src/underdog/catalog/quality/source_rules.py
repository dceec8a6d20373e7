"""Rules that compare a source's answer with the snapshot before, and judge it as a whole."""

from __future__ import annotations

from underdog.catalog.quality import limits
from underdog.catalog.quality.rules import Rule

# What is compared with the snapshot before.
COMPARED = {
    # types that were sold in a region of the new answer, and whether they are gone everywhere
    "types": """
        SELECT b.provider, b.instance_type, bool_and(g.instance_type IS NULL) AS gone
        FROM (SELECT DISTINCT provider, region, instance_type FROM before) AS b
        JOIN (SELECT DISTINCT provider, region FROM given) AS r
            ON r.provider = b.provider AND r.region = b.region
        LEFT JOIN (SELECT DISTINCT provider, instance_type FROM given) AS g
            ON g.provider = b.provider AND g.instance_type = b.instance_type
        GROUP BY ALL
    """,
    # the same; where no region of before is in the answer, its regions say nothing: of all types
    "sold": """
        SELECT provider, instance_type, gone FROM types
        UNION ALL
        SELECT b.provider, b.instance_type, bool_and(g.instance_type IS NULL)
        FROM before AS b
        JOIN (SELECT DISTINCT provider FROM given) AS p ON p.provider = b.provider
        LEFT JOIN (SELECT DISTINCT provider, instance_type FROM given) AS g
            ON g.provider = b.provider AND g.instance_type = b.instance_type
        WHERE b.provider NOT IN (SELECT provider FROM types)
        GROUP BY ALL
    """,
    # offers that had a price before, and whether it moved far
    "moves": f"""
        SELECT l.row, l.provider, l.price, b.price AS old, b.date AS since,
            l.price IS NULL AS gone,
            greatest(l.price / b.price, b.price / l.price) > CASE WHEN l.purchase = 'spot'
                THEN {limits.SPOT_MOVE_FACTOR} ELSE {limits.MOVE_FACTOR} END AS far
        FROM live AS l JOIN (
            SELECT offer, service, min(price) AS price, min_by(date, price) AS date FROM before
            WHERE price > 0 AND provider IN (SELECT provider FROM given) GROUP BY ALL
        ) AS b ON b.offer = l.offer AND b.service IS NOT DISTINCT FROM l.service
    """,
    # whether they have none any more; where none is under its name of before, of all offers
    "priced": """
        SELECT provider, gone FROM moves
        UNION ALL
        SELECT provider, bool_and(price IS NULL) OVER (PARTITION BY provider) FROM live
        WHERE provider IN (SELECT provider FROM before WHERE price > 0)
            AND provider NOT IN (SELECT provider FROM moves)
    """,
}


def _share(of: str, which: str, words: str, *, least: int, most: float) -> str:
    """A query for the providers of which too large a share is so."""
    return f"""
        SELECT provider AS offer, count(*) FILTER ({which}) || ' of its ' || count(*)
            || ' {words} (' || round(100.0 * count(*) FILTER ({which}) / count(*))::INT || ' %)'
            AS message
        FROM {of} GROUP BY provider
        HAVING count(*) >= {least} AND count(*) FILTER ({which}) > {most} * count(*)
            OR count(*) >= {limits.LEAST_ALL} AND bool_and({which})
    """


CHANGES = (
    Rule(
        name="type_vanished",
        severity="caveat",
        says="it was in the snapshot before and is no more",
        remedy="See whether the provider still sells it; the snapshot before is kept.",
        query="""
            SELECT provider || '/' || instance_type AS offer,
                'it was in the snapshot before, in a region that this one has too' AS message
            FROM types WHERE gone
        """,
        rows=False,
    ),
    Rule(
        name="price_moved",
        severity="caveat",
        says="its price has moved far since the snapshot before",
        remedy="Look the price up; underdog catalog diff shows what else has moved.",
        query="""
            SELECT row, 'from ' || shown(old) || ' to ' || shown(price) || ' USD/h'
                || coalesce(' since ' || since, '') AS message
            FROM moves WHERE far
        """,
    ),
    Rule(
        name="source_shrank",
        severity="reject_source",
        says="too many of its instance types are gone",
        remedy="The last good prices stand. Look at the source.",
        query=_share(
            "sold",
            "gone",
            "instance types are gone",
            least=limits.LEAST_TYPES,
            most=limits.VANISHED_SHARE,
        ),
        rows=False,
    ),
    Rule(
        name="source_moved",
        severity="reject_source",
        says="too many of its prices have moved far",
        remedy="The last good prices stand. Look whether the source has changed its meaning.",
        query=_share(
            "(FROM moves WHERE price > 0)",
            "far",
            "prices have moved far",
            least=limits.LEAST_ROWS,
            most=limits.MOVED_SHARE,
        ),
        rows=False,
    ),
    Rule(
        name="source_unpriced",
        severity="reject_source",
        says="too many of its prices are gone",
        remedy="The last good prices stand. Look whether the column of prices has moved.",
        query=_share(
            "priced",
            "gone",
            "prices are gone",
            least=limits.LEAST_ROWS,
            most=limits.MOVED_SHARE,
        ),
        rows=False,
    ),
)

FAULTY = Rule(
    name="source_faulty",
    severity="reject_source",
    says="too many of its offers are faulty",
    remedy="The last good prices stand. Look at what the rules found, and at the source.",
    query=_share(
        "(SELECT provider, row IN (SELECT row FROM faults) AS faulty FROM given "
        "WHERE provider IS NOT NULL)",
        "faulty",
        "offers are faulty",
        least=limits.LEAST_ROWS,
        most=limits.FAULTY_SHARE,
    ),
    rows=False,
)

RULES = (*CHANGES, FAULTY)
