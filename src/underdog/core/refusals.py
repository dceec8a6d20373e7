"""Why a provider gave no machine, from its own words, and what to try next.

Each kind leads elsewhere: another zone, another offer, a request for quota, a correction, or the
same again later. Lack of quota looks like lack of capacity to most tools: then no other zone helps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

Kind = Literal[
    "no_capacity", "quota", "not_offered", "permission", "malformed", "transient", "unknown"
]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Its kind, the provider's name of the quota where one is short, and what to do next."""

    kind: Kind
    next_step: str
    quota: str | None = None


NEXT: dict[Kind, str] = {
    "no_capacity": "try another zone, then another region or offer; ask again later",
    "quota": "ask for quota, or take an offer that counts against another one",
    "not_offered": "try another zone or region: this one does not sell it",
    "permission": "give the credentials the right that is named, or renew them",
    "malformed": "correct the request: the same one fails everywhere",
    "transient": "send the same request again after a pause",
    "unknown": "read the provider's words; nothing is concluded from them",
}

# The first that matches decides: the special before the general. Sources: the error codes of the
# EC2 API reference, of Compute Engine's and Cloud TPU's troubleshooting pages, of Azure Resource
# Manager's and Azure VM allocation errors; the pending reasons of Slurm's squeue; Kubernetes'
# scheduler; the public issue trackers of tools that start machines for the smaller clouds.
_RULES: tuple[tuple[Kind, str], ...] = (
    # a rate of requests is called a quota too
    ("transient", r"requestlimitexceeded|throttl|rate ?limit|toomanyrequests|too many requests"),
    ("transient", r"queries per|requests per|\b429\b"),
    (
        "permission",
        r"expiredtoken|token.{0,20}(has )?expired|credentials.{0,30}(expired|not found)",
    ),
    ("permission", r"unable to locate credentials|could not automatically determine credentials"),
    ("permission", r"unauthorizedoperation|authfailure|accessdenied|access denied|pendingverif"),
    ("permission", r"permission_denied|forbidden|authorizationfailed|invalidauthenticationtoken"),
    (
        "permission",
        r"optinrequired|required '[\w.]+' permission|does not have (authorization|perm)",
    ),
    ("permission", r"invalid api key|unauthorized|unauthenticated|invalid account|\b401\b|\b403\b"),
    ("quota", r"limit ?exceeded|maxspotinstancecountexceeded|quota.{0,120}exceeded|quotaexceeded"),
    ("quota", r"exceed\w*.{0,80}quota|quota limit|exceeds? .{0,40}\blimit of\b|vcpu limit"),
    (
        "quota",
        r"not enough quota|insufficient quota|quota of 0|assoc\w*limit|qos\w*(limit|peruser)",
    ),
    ("quota", r"(assoc|qos)(grp|max)|insufficient (funds|balance)|spending limit"),
    ("no_capacity", r"insufficient\w*capacity|insufficient.capacity|reservationcapacityexceeded"),
    (
        "no_capacity",
        r"zone_resource_pool_exhausted|stockout|resource_pool_exhausted|not enough cap",
    ),
    ("no_capacity", r"does not have (enough|sufficient).{0,30}resources|no more capacity"),
    ("no_capacity", r"do not have sufficient .{0,60}capacity|spotmaxpricetoolow|max-price-too-low"),
    ("no_capacity", r"allocationfailed|allocation failed|overconstrained\w*allocation"),
    ("not_offered", r"notavailableforsubscription|not available for subscription"),
    ("no_capacity", r"skunotavailable|capacity restrictions|currently not available in location"),
    (
        "no_capacity",
        r"no longer any instances available|out of (stock|capacity)|sold out|no_such_ask",
    ),
    ("no_capacity", r"insufficient (nvidia|cpu|memory|amd|google)|nodes are available: "),
    (
        "no_capacity",
        r"cannot be scheduled right now|\(resources\)|\(priority\)|nodes? required for",
    ),
    ("no_capacity", r"failed to acquire resources|no (instances|offers|hosts) (are )?available"),
    ("not_offered", r"not supported in your requested availability zone|unsupported(operation)?\b"),
    (
        "not_offered",
        r"machine type with name .{0,60}does not exist|not (offered|available) in (this )?",
    ),
    (
        "not_offered",
        r"acceleratortypes/.{0,80}(not found|does not exist)|notfound.{0,40}machinetype",
    ),
    ("not_offered", r"requested node configuration is not available|invalid (partition|gres)"),
    ("not_offered", r"catalog does not contain any instances|locationnotavailableforresourcetype"),
    (
        "malformed",
        r"invalidparameter|malformed|validationerror|invalid value|invalidrequest|badreq",
    ),
    ("malformed", r"missingparameter|invalidami|image.{0,40}not found|invalid argument|\b400\b"),
    (
        "transient",
        r"internal ?error|internalservererror|serviceunavailable|backend_?error|retryable",
    ),
    (
        "transient",
        r"unavailable|timed? ?out|connection (reset|refused|aborted)|temporar|\b50[0234]\b",
    ),
)


@cache  # on use: who only reads records does not classify
def _compiled() -> tuple[tuple[Kind, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(pattern)) for kind, pattern in _RULES)


# Service Quotas of EC2: families, on demand and spot; the code is what a request for more names.
_AWS_QUOTAS = (
    ("g vt", "Running On-Demand G and VT instances", "L-DB2E81BA"),
    ("p", "Running On-Demand P instances", "L-417A185B"),
    ("inf", "Running On-Demand Inf instances", "L-1945791B"),
    ("trn", "Running On-Demand Trn instances", "L-2C3B7624"),
    ("dl", "Running On-Demand DL instances", "L-6E869C2A"),
    ("f", "Running On-Demand F instances", "L-74FC7D96"),
    ("x", "Running On-Demand X instances", "L-7295265B"),
    ("u", "Running On-Demand High Memory instances", "L-43DA4232"),
    ("hpc", "Running On-Demand HPC instances", "L-F7808C92"),
    ("a c d h i im is m r t z", "Running On-Demand Standard instances", "L-1216C47A"),
)
_AWS_SPOT_QUOTAS = (
    ("g vt", "All G and VT Spot Instance Requests", "L-3819A6DF"),
    ("p", "All P Spot Instance Requests", "L-7212CCBC"),
    ("inf", "All Inf Spot Instance Requests", "L-B5D1601B"),
    ("trn", "All Trn Spot Instance Requests", "L-6B0D517C"),
    ("dl", "All DL Spot Instance Requests", "L-85EED4F7"),
    ("f", "All F Spot Instance Requests", "L-88CF9481"),
    ("x", "All X Spot Instance Requests", "L-E3A00192"),
    ("a c d h i im is m r t z", "All Standard Spot Instance Requests", "L-34B43A08"),
)
_QUOTA_NAMES = (
    re.compile(r"quota(?: limit)? '([^']{1,80})'", re.IGNORECASE),
    re.compile(r"exceeding approved ([\w .-]{1,80}?) quota", re.IGNORECASE),
    re.compile(r"quota metric '([^']{1,80})'", re.IGNORECASE),
    re.compile(r"\b((?:Assoc|QOS)(?:Grp|Max)\w{1,60})", re.IGNORECASE),
)


def classify(
    words: str, *, provider: str = "", instance_type: str = "", spot: bool = False
) -> Refusal:
    """What a provider's error message means.

    Args:
        words: the message with its code, as the provider gave it.
        provider: such as ``aws``; with the type it names the quota that AWS does not tell.
        instance_type: that was asked for.
        spot: whether it was asked for as spot.
    """
    lower = " ".join(words.lower().split())[:20_000]
    found_kinds = (kind for kind, pattern in _compiled() if pattern.search(lower))
    kind: Kind = next(found_kinds, "unknown")
    if kind != "quota":
        return Refusal(kind, NEXT[kind])
    told = next((found[1] for p in _QUOTA_NAMES if (found := p.search(words))), None)
    quota = told or (aws_quota(instance_type, spot) if provider == "aws" else None)
    named = f"ask for more of the quota '{quota}'" if quota else "ask for quota"
    return Refusal(kind, f"{named}, or take an offer that counts against another one", quota)


def aws_quota(instance_type: str, spot: bool) -> str | None:
    """The EC2 quota against which a type counts, with its code; None where it is not known."""
    letters = re.match(r"[a-z]+", instance_type.partition("-")[0])
    for families, name, code in _AWS_SPOT_QUOTAS if spot else _AWS_QUOTAS:
        if letters and letters[0] in families.split():
            return f"{name} ({code})"
    return None
