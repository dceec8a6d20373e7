"""Rules about the hardware of one offer: units, sizes, accelerators."""

from __future__ import annotations

from underdog.catalog.quality import limits
from underdog.catalog.quality.rules import Rule

# What Google attaches to a series, by the beginning of the name (Compute Engine, "GPU machine
# types"); a series that is not listed may have any.
_PAIRS = {
    "a2": "A100",
    "a3": "H100|H200",
    "a4": "B200",
    "a4x": "GB200|GB300",
    "g2": "L4",
    "g4": "RTX-PRO-6000",
    "n1": "K80|P4|P100|T4|V100",
    **dict.fromkeys(("c2", "c2d", "c3", "c3d", "c4", "c4a", "c4d", "e2", "h3"), "none"),
    **dict.fromkeys(("m1", "m2", "m3", "n2", "n2d", "n4", "t2a", "t2d", "z3"), "none"),
}
_SOLD_WITH = " ".join(f"WHEN '{series}' THEN '^({names})'" for series, names in _PAIRS.items())

_HOSTS = (
    Rule(
        name="impossible_hardware",
        severity="quarantine",
        says="a figure of its hardware cannot be",
        remedy="Look at the source: a column was read as another, or 0 stands for unknown.",
        query=f"""
            SELECT row, concat_ws(', ',
                CASE WHEN nodes < 1 OR isinf(nodes) THEN 'nodes is ' || shown(nodes) END,
                CASE WHEN vcpus <= 0 OR vcpus > {limits.MOST_VCPUS}
                    THEN 'vcpus is ' || shown(vcpus) END,
                CASE WHEN memory <= 0 OR isinf(memory) THEN 'memory_gib is ' || shown(memory) END,
                CASE WHEN count < 0 OR count > {limits.MOST_ACCELERATORS}
                    THEN 'accelerator_count is ' || shown(count) END,
                CASE WHEN each <= 0 OR isinf(each)
                    THEN 'accelerator_memory_gib is ' || shown(each) END,
                CASE WHEN usable <= 0 OR isinf(usable)
                    THEN 'accelerator_usable_gib is ' || shown(usable) END
            ) AS message
            FROM live WHERE message <> ''
        """,
    ),
    Rule(
        name="memory_unit",
        severity="quarantine",
        says="its host memory is not in GiB",
        remedy="Divide it by 2^30 (bytes) or 2^10 (MiB) where the source is read.",
        query=f"""
            SELECT row, shown(memory) || ' GiB is no host''s memory; as bytes it would be '
                || shown(memory / 1024^3) || ' GiB, as MiB ' || shown(memory / 1024) AS message
            FROM live
            WHERE memory > {limits.MOST_MEMORY_GIB} OR memory > {limits.MOST_GIB_PER_VCPU} * vcpus
        """,
    ),
    Rule(
        name="implausible_hardware",
        severity="caveat",
        says="a figure of its host is unusual",
        remedy="Compare it with the provider's page of the machine.",
        query=f"""
            SELECT row, concat_ws(', ',
                CASE WHEN memory < {limits.LEAST_GIB_PER_VCPU} * vcpus
                    THEN shown(memory) || ' GiB for ' || shown(vcpus) || ' vCPUs' END,
                CASE WHEN ghz NOT BETWEEN {limits.LEAST_GHZ} AND {limits.MOST_GHZ}
                    THEN 'a clock of ' || shown(ghz) || ' GHz' END,
                CASE WHEN network <= 0 OR network > {limits.MOST_NETWORK_GBPS}
                    THEN 'a network of ' || shown(network) || ' Gbit/s' END,
                CASE WHEN disk < 0 OR disk > {limits.MOST_DISK_GB}
                    THEN 'a disk of ' || shown(disk) || ' GB' END
            ) AS message
            FROM live WHERE message <> ''
        """,
    ),
    Rule(
        name="missing_hardware",
        severity="caveat",
        says="some of its hardware is not known",
        remedy="Look it up; an offers file of your own can say it.",
        query="""
            SELECT row, 'not known: ' || concat_ws(', ',
                CASE WHEN vcpus IS NULL THEN 'vCPUs' END,
                CASE WHEN memory IS NULL THEN 'memory' END,
                CASE WHEN count IS NULL THEN 'whether it has accelerators' END
            ) AS message
            FROM live WHERE vcpus IS NULL OR memory IS NULL OR count IS NULL
        """,
    ),
)

_ACCELERATORS = (
    Rule(
        name="nameless_accelerator",
        severity="quarantine",
        says="it has accelerators of an unknown name",
        remedy="Find the model, and add the source's name for it to the accelerators' aliases.",
        query="""
            SELECT row, 'it has ' || shown(count) || ' accelerators without a name' AS message
            FROM live WHERE count > 0 AND accelerator IS NULL
        """,
    ),
    Rule(
        name="accelerator_without_count",
        severity="quarantine",
        says="it names an accelerator and has none of it",
        remedy="A part of an accelerator has a count below 1: find it where the source is read.",
        query="""
            SELECT row, 'the accelerator is ' || accelerator || ', and its count 0' AS message
            FROM live WHERE count = 0 AND accelerator IS NOT NULL
        """,
    ),
    Rule(
        name="impossible_pair",
        severity="quarantine",
        says="its accelerator is not sold with this machine",
        remedy="See the provider's page of machines with accelerators.",
        query=f"""
            SELECT row, accelerator || ' is not sold with ' || instance_type AS message FROM live
            WHERE provider = 'gcp' AND count > 0 AND NOT regexp_matches(accelerator,
                CASE split_part(instance_type, '-', 1) {_SOLD_WITH} ELSE '' END)
        """,
    ),
    Rule(
        name="accelerator_memory_unit",
        severity="quarantine",
        says="the memory of its accelerator is not in GiB",
        remedy="Divide it by 1,024 (MiB) where the source is read.",
        query=f"""
            SELECT row, shown(each) || ' GiB is no accelerator''s memory' AS message FROM live
            WHERE each > {limits.MOST_ACCELERATOR_GIB}
        """,
    ),
    Rule(
        name="total_memory_as_each",
        severity="quarantine",
        says="the memory of all its accelerators stands as that of each",
        remedy="Divide it by their number where the source is read.",
        query=f"""
            SELECT row, shown(each) || ' GiB for each of ' || shown(count) || ' ' || accelerator
                || ', which has ' || shown(nominal) AS message
            FROM live
            WHERE count >= 2
                AND abs(each / (count * nominal) - 1) <= {limits.MEMORY_TOLERANCE}
        """,
    ),
    Rule(
        name="accelerator_memory_differs",
        severity="caveat",
        says="the memory of its accelerator is not that of the model",
        remedy="Run nvidia-smi, or its like, on the machine.",
        query=f"""
            SELECT row, accelerator || ' with ' || shown(each) || ' GiB'
                || CASE WHEN usable > each THEN ', of which ' || shown(usable) || ' are usable'
                    ELSE '' END
                || '; the model has ' || shown(nominal * least(count, 1)) AS message
            FROM live
            WHERE count > 0 AND (usable > each * {1 + limits.USABLE_TOLERANCE}
                OR abs(each / (nominal * least(count, 1)) - 1) > {limits.MEMORY_TOLERANCE})
        """,
    ),
    Rule(
        name="total_memory_differs",
        severity="caveat",
        says="the total memory of its accelerators is not their number times that of each",
        remedy="Rely on the memory of each.",
        query=f"""
            SELECT row, shown(count) || ' × ' || shown(each) || ' GiB, and in total '
                || shown(total) AS message
            FROM live
            WHERE count > 0
                AND abs(total / (each * greatest(count, 1)) - 1) > {limits.MEMORY_TOLERANCE}
        """,
    ),
    Rule(
        name="unknown_accelerator",
        severity="caveat",
        says="nothing is known of its accelerator but the name",
        remedy="It cannot be predicted: measure on it.",
        query="""
            SELECT row, 'nothing is known of ''' || accelerator || '''' AS message FROM live
            WHERE count > 0 AND accelerator IS NOT NULL AND nominal IS NULL
        """,
    ),
)

# of several offers at once: what other machines of the provider have says which column is meant
HOST_MEMORY = Rule(
    name="host_memory_is_accelerators",
    severity="caveat",
    says="its host has just as much memory as its accelerators",
    remedy="Compare it with the provider's page: one may stand in the column of the other.",
    query="""
        WITH suspects AS MATERIALIZED (
            SELECT row, provider, family, vcpus, memory, accelerator, count, each,
                round(memory / vcpus, 2) AS shape
            FROM live WHERE count > 0 AND (memory = each OR memory = each * count)
        ), ordinary AS MATERIALIZED (
            SELECT DISTINCT provider, family, vcpus, memory, round(memory / vcpus, 2) AS shape
            FROM live
            WHERE provider IN (SELECT provider FROM suspects) AND vcpus > 0 AND NOT coalesce(
                count > 0 AND (memory = each OR memory = each * count), FALSE)
        )
        SELECT row, shown(memory) || ' GiB in the host, and ' || shown(count) || ' ' || accelerator
            || ' of ' || shown(each) || ' GiB' AS message
        FROM suspects AS s
        WHERE NOT EXISTS (FROM ordinary AS o WHERE o.provider = s.provider
            AND o.vcpus = s.vcpus AND o.memory = s.memory)
        AND NOT EXISTS (FROM ordinary AS o WHERE o.provider = s.provider
            AND o.family = s.family AND o.shape = s.shape)
    """,
)

RULES = (*_HOSTS, *_ACCELERATORS)
