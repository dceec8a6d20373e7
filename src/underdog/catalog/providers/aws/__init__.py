"""AWS: hardware from the EC2 API, prices from the price list, spot history and savings plans.

``fetch`` needs the extra ``aws``; ``parse`` does not.
"""

from __future__ import annotations

from underdog.catalog.providers.aws.api import asks, fetch
from underdog.catalog.providers.aws.offers import parse

__all__ = ["asks", "fetch", "parse"]
