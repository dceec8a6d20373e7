"""The spot price of a type in a zone, from its history."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import UTC, datetime

import msgspec

from underdog.catalog.hardware import price_of
from underdog.catalog.providers.aws.quotes import Quote, Quotes, left_out, shown
from underdog.catalog.providers.aws.shapes import SpotPrice, read
from underdog.catalog.sources import Raw, number
from underdog.errors import CatalogError

NO_HISTORY = "the spot price history of the last day has none for it"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LINUX = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
# the newest price counts, even where it came in the moment of the question
_NEWEST_HOLDS_SECONDS = 3600.0

History = dict[float, set[float]]  # the prices from a moment on, in seconds since 1970


class Window(msgspec.Struct, rename="pascal"):
    """What was asked of DescribeSpotPriceHistory."""

    start_time: str
    end_time: str


def region_of(zone: str) -> str | None:
    """The region of a zone, also of a local or wavelength zone: ``us-west-2-lax-1a``."""
    found = re.match(r"[a-z]+(?:-[a-z]+)+-\d+", zone)
    return found[0] if found else None


def quotes(raw: Raw) -> Quotes:
    """Quotes of the documents ``spot``: for each type and zone the mean over time.

    Raises:
        CatalogError: a document has another shape.
    """
    window = next(iter(read(raw, "spot_window", Window)), None)
    start = end = 0.0
    if window is not None:
        start = _seconds(window.start_time, "row 0 of 'spot_window', field 'StartTime'")
        end = _seconds(window.end_time, "row 0 of 'spot_window', field 'EndTime'")
    histories: dict[tuple[str, str], History] = defaultdict(lambda: defaultdict(set))
    for row, item in enumerate(read(raw, "spot", SpotPrice)):
        system, zone, name = item.product_description, item.availability_zone, item.instance_type
        if system not in (None, *_LINUX):
            reason = f"the price of another operating system: {system[:40]}"
            yield left_out(region_of(zone), name, reason)
            continue
        if region_of(zone) is None:
            yield left_out(zone[:40], name, "a spot price in a zone without a region")
            continue
        seconds = _seconds(item.timestamp, f"row {row} of 'spot' ({name}), field 'Timestamp'")
        moments, price = histories[zone, name], number(item.spot_price)
        if price is None:
            reason = f"the spot price history gives '{str(item.spot_price)[:40]}'"
            yield left_out(region_of(zone), name, reason)
        else:
            moments[seconds].add(price)
    for (zone, name), history in histories.items():
        mean = time_weighted_mean(history, start, end)
        yield Quote(
            region=region_of(zone) or "",
            zone=zone,
            instance_type=name,
            purchase="spot",
            price=price_of(None if mean is None else shown(mean), raw.source, raw.date, NO_HISTORY),
        )


def time_weighted_mean(history: History, start: float, end: float) -> float | None:
    """The mean price over a window; None where there is no price.

    A price holds until the next one, the newest until the end of the window and for an hour at
    least. Prices of one moment count alike.

    Args:
        history: the prices that hold from a moment on; moments are seconds since any instant.
        start: of the window; the price in force then may be older.
        end: of the window.
    """
    if not history:
        return None
    moments = sorted(history)
    ends = [*moments[1:], max(end, moments[-1] + _NEWEST_HOLDS_SECONDS)]
    weighed = total = 0.0
    for moment, until in zip(moments, ends, strict=True):
        seconds = max(until - max(moment, start), 0.0)
        weighed += seconds * _mean(history[moment])
        total += seconds
    return weighed / total if total else _mean(history[moments[-1]])


def _mean(prices: set[float]) -> float:
    return sum(prices) / len(prices)


def _seconds(text: str, where: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise CatalogError(f"aws: {where} cannot be read: '{text[:40]}' is no time.") from error
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH).total_seconds()
