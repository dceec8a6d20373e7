"""SkyPilot's catalog: prices of more than twenty clouds, one CSV file each.

The files come from the web or from the folder where an installed SkyPilot keeps them. Their
columns: InstanceType, AcceleratorName, AcceleratorCount, vCPUs, MemoryGiB, Price, Region,
AvailabilityZone, GpuInfo, SpotPrice; some files lack some.
"""

from __future__ import annotations

import csv
import functools
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from underdog.catalog.facts import AcceleratorFacts, accelerator_named, accelerators
from underdog.catalog.hardware import Hardware, offer_row, price_of
from underdog.catalog.http import Http
from underdog.catalog.sources import FetchOptions, LeftOut, Raw, mapping, number, text
from underdog.errors import CatalogError, HttpError
from underdog.units import GIB, MIB

URL = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
_SOURCE = "SkyPilot catalog"
CACHE = Path("~/.sky/catalogs/v8")
# asked for by name only: underdog asks these clouds themselves
OWN = ("aws", "azure", "gcp")
CLOUDS = (
    "cudo", "daytona", "do", "fluidstack", "hyperbolic", "hyperstack", "ibm", "jarvislabs",
    "lambda", "lium", "mithril", "nebius", "oci", "paperspace", "primeintellect", "runpod", "scp",
    "seeweb", "shadeform", "spheron", "vast", "verda", "vsphere", "yotta",
)  # fmt: skip
_SHAPE = ("vCPUs", "MemoryGiB", "StorageGiB", "AcceleratorName", "AcceleratorCount", "GpuInfo")
NEEDED = ("InstanceType", "Price", "Region")
# Above this a host memory in GiB is a number of bytes under a wrong name.
MOST_MEMORY_GIB = 65536
# no accelerator has so little memory in MiB: the number is of GB
LEAST_MIB = 1024
# the machine types whose price in Google's file is the host's, without its accelerators
_BARE_HOSTS = re.compile(r"(a2|a3|a4x?|g2|g4)-|ct\d|tpu")
# of a machine such as gpu_1x_h100_pcie, whose accelerator is called H100 alone
_PCIE, _FORM = re.compile(r"(?i)(?<![a-z])pcie(?![a-z])"), re.compile(r"(?i)pcie|sxm|nvlink")
Row = Mapping[Any, Any]  # the fields of a line by column; those beyond the columns by None


class _Sizes(NamedTuple):
    """Of a row: the model, how many, and the numbers that stand for the memory, in MiB."""

    name: str
    number: float
    mib: float | None
    total_mib: float | None


def asks(options: FetchOptions) -> list[str]:
    """What a refresh reads."""
    clouds = options.only or CLOUDS
    if options.file is not None:
        return [f"reads '{options.file}'/<cloud>/vms.csv"]
    return [f"GET {_base()}/{cloud}/vms.csv" for cloud in clouds]


def _base() -> str:
    return (os.environ.get("UNDERDOG_SKYPILOT_URL") or URL).rstrip("/")


def fetch(http: Http, options: FetchOptions) -> Raw:
    """The files of the clouds, from a folder of the user's, the web, or SkyPilot's own cache.

    Raises:
        CatalogError: there is no file of any cloud.
    """
    clouds = options.only or CLOUDS
    folder = options.file
    failed: list[dict[str, str]] = []
    if folder is None:
        files = list(_from_web(http, clouds, options, failed))
        if not files and (cache := CACHE.expanduser()).is_dir():
            folder = cache
    if folder is not None:
        return _from_folder(folder, options)
    if not files:
        reason = failed[0]["reason"] if failed else "no cloud was asked for"
        raise CatalogError(
            f"SkyPilot's catalog cannot be fetched: {reason}",
            "From a folder: underdog catalog refresh --provider skypilot --file FOLDER",
        )
    documents: dict[str, list[Any]] = {"files": files, "failed": failed}
    return Raw(provider="skypilot", documents=documents, source=_SOURCE, date=options.date)


def _from_web(
    http: Http,
    clouds: tuple[str, ...],
    options: FetchOptions,
    failed: list[dict[str, str]],
) -> Iterator[dict[str, str]]:
    for done, cloud in enumerate(clouds):
        options.progress("files of clouds", done, len(clouds))
        try:
            yield {"cloud": cloud, "text": http.text(f"{_base()}/{cloud}/vms.csv")}
        except HttpError as error:
            failed.append({"cloud": cloud, "reason": error.message})
            if error.status is None:  # no network: the other files would not come either
                return
    options.progress("files of clouds", len(clouds), len(clouds))


def _from_folder(folder: Path, options: FetchOptions) -> Raw:
    """The files ``<cloud>/vms.csv``; the date is that of the oldest."""
    found = {file.parent.name: file for file in sorted(folder.glob("*/vms.csv"))}
    wanted = options.only or [cloud for cloud in found if cloud not in OWN]
    files, oldest = [], options.now
    try:
        for cloud in wanted:
            if cloud in found:
                files.append({"cloud": cloud, "text": found[cloud].read_text("utf-8-sig")})
                changed = datetime.fromtimestamp(found[cloud].stat().st_mtime, UTC)
                oldest = min(oldest, changed)
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogError(f"Cannot read SkyPilot's catalog in '{folder}': {error}.") from error
    if not files:
        raise CatalogError(
            f"There is no file <cloud>/vms.csv in '{folder}'"
            + (f" for {', '.join(options.only)}." if options.only else "."),
            f"An installed SkyPilot keeps them in {CACHE}.",
        )
    date = oldest.astimezone(UTC).date().isoformat()
    return Raw(provider="skypilot", documents={"files": files}, source=_SOURCE, date=date)


def parse(raw: Raw) -> Iterator[dict[str, Any] | LeftOut]:
    """The offers of all files. Zones of one region at one price are one offer.

    A file that cannot be read leaves its cloud without offers, with the reason.

    Raises:
        CatalogError: what was recorded is not of this shape; names the place.
    """
    for place, failure in enumerate(raw.items("failed")):
        where = f"skypilot: failed[{place}]"
        failure = mapping(failure, where)
        cloud = text(failure.get("cloud"), f"{where}.cloud")
        reason = text(failure.get("reason"), f"{where}.reason")
        yield LeftOut(cloud, "", "", reason)
    for place, file in enumerate(raw.items("files")):
        where = f"skypilot: files[{place}]"
        file = mapping(file, where)
        cloud, content = text(file.get("cloud"), f"{where}.cloud"), file.get("text")
        content = content if isinstance(content, str) else text(content, f"{where}.text")
        yield from _Cloud(cloud, raw).offers(content)


class _Cloud:
    """The file of one cloud."""

    def __init__(self, name: str, raw: Raw) -> None:
        self.name, self.date = name, raw.date
        self.source = f"{raw.source}, {name}"
        self.totals = False
        self.known: dict[tuple[str | None, ...], tuple[Hardware | str, str | None]] = {}

    def offers(self, content: str) -> Iterator[dict[str, Any] | LeftOut]:
        try:
            rows: list[Row] = list(csv.DictReader(io.StringIO(content, newline="")))
        except csv.Error as error:
            yield LeftOut(self.name, "", "", f"its file cannot be read as CSV: {error}")
            return
        lacking = [name for name in NEEDED if not rows or name not in rows[0]]
        if lacking:
            reason = f"its file has no column {', '.join(lacking)}" if rows else "its file is empty"
            yield LeftOut(self.name, "", "", reason)
            return
        self.totals = memory_is_of_all(rows)
        sells_spot = any(number(row.get("SpotPrice")) for row in rows)
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            kind, region = _plain(row, "InstanceType"), _region(row)
            fault = self._no_offer(row, kind, region)
            if fault is not None:
                yield LeftOut(self.name, region, kind, fault)
            else:
                groups.setdefault((kind, region), []).append(row)
        for (kind, region), group in groups.items():
            yield from self._type(kind, region, group, sells_spot)

    def _no_offer(self, row: Row, kind: str, region: str) -> str | None:
        if not kind:
            return "an accelerator without a machine"
        if not region:
            return "the row names no region"
        if None in row:
            return "the row has more fields than the file has columns"
        bare = not _plain(row, "AcceleratorName")
        if self.name == "gcp" and bare and _BARE_HOSTS.match(kind):
            return "the price is the host's, without its accelerators"
        return None

    def _type(
        self, kind: str, region: str, group: Sequence[Row], sells_spot: bool
    ) -> Iterator[dict[str, Any] | LeftOut]:
        shape = _shape(group[0])
        if shape not in self.known:
            self.known[shape] = self._hardware(group[0])
        hardware, doubt = self.known[shape]
        if isinstance(hardware, str):
            yield LeftOut(self.name, region, kind, hardware)
            return
        same = []
        for row in group:
            if row is group[0] or _shape(row) == shape:
                same.append(row)
            else:
                yield LeftOut(self.name, region, kind, "the same type stands with other hardware")
        for purchase, column in (("on-demand", "Price"), ("spot", "SpotPrice")):
            if purchase == "spot" and not sells_spot:
                continue
            prices, twice = _by_zone(same, column)
            if twice:
                reason = f"two {purchase} prices stand for one type; the lower is kept"
                yield LeftOut(self.name, region, kind, reason)
            names = [name for name in ("two_prices" if twice else None, doubt) if name]
            missing = f"SkyPilot's catalog has no {purchase} price for it"
            for zone, zones, amount in _places(prices):
                price = price_of(amount, self.source, self.date, missing)
                row = offer_row(
                    self.name, region, kind, purchase, hardware,
                    price=price, zone=zone, zones=zones,
                )  # fmt: skip
                row["caveats"] = ",".join(names) or None
                yield row

    def _hardware(self, row: Row) -> tuple[Hardware | str, str | None]:
        """The hardware, or why the row is no offer; and the name of a doubt about it."""
        memory = number(row.get("MemoryGiB"))
        if memory is not None and memory > MOST_MEMORY_GIB:
            if memory < GIB:
                return f"its host memory of {memory:g} GiB is of no known unit", None
            memory /= GIB
        storage = number(row.get("StorageGiB"))
        found = Hardware(
            vcpus=number(row.get("vCPUs")),
            memory_gib=memory,
            local_disk_gb=None if storage is None else round(storage * GIB / 1e9, 1),
        )
        sizes = _sizes(row)
        if isinstance(sizes, str):
            return sizes, None
        if sizes is None:
            return found, None
        return self._accelerated(found, sizes)

    def _accelerated(self, bare: Hardware, sizes: _Sizes) -> tuple[Hardware | str, str | None]:
        source = None if sizes.mib is None else sizes.mib * MIB / GIB
        each = _each(sizes, self.totals)
        facts = _facts(sizes.name, each)
        part = min(sizes.number, 1.0)
        if facts is not None and each is not None:
            near = (each, each / sizes.number, each * sizes.number)
            if part == 1.0 and not any(_is_near(size, facts) for size in near):
                said = f"{each:.4g} GiB is not the memory of one {facts.key}"
                return f"{said}, which has {facts.memory_gib:g}", None
            each = facts.memory_gib * part
        made = Hardware(
            vcpus=bare.vcpus,
            memory_gib=bare.memory_gib,
            local_disk_gb=bare.local_disk_gb,
            accelerator=facts.key if facts else sizes.name,
            accelerator_count=sizes.number,
            accelerator_memory_gib=each,
            accelerator_memory_source_gib=None if source is None else round(source, 3),
        )
        wrong = False
        if sizes.total_mib is not None and each is not None:
            total = sizes.total_mib * MIB / GIB
            wrong = abs(total / (each * max(sizes.number, 1)) - 1) > 0.15
        return made, "total_memory_differs" if wrong else None


def memory_is_of_all(rows: Sequence[Row]) -> bool:
    """Whether the memory in a file is that of all accelerators of a machine together.

    Some files give it for each, some for all. Which it is follows from the machines with several
    accelerators of a model that comes with one size of memory.
    """
    votes = 0
    shapes = {_shape(row): row for row in rows}
    for sizes in map(_sizes, shapes.values()):
        if isinstance(sizes, str) or sizes is None or sizes.mib is None or sizes.number < 2:
            continue
        facts = _facts(sizes.name, None)
        if facts is not None:
            gib = sizes.mib * MIB / GIB
            votes += _is_near(gib / sizes.number, facts) - _is_near(gib, facts)
    return votes > 0


def _each(sizes: _Sizes, totals: bool) -> float | None:
    """GiB of one accelerator, as well as the row tells."""
    if sizes.mib is None:
        return None
    gib = sizes.mib * MIB / GIB
    facts = _facts(sizes.name, None)
    if facts is not None and _is_near(gib / sizes.number, facts) != _is_near(gib, facts):
        totals = _is_near(gib / sizes.number, facts)
    return gib / sizes.number if totals and sizes.number > 1 else gib


def _is_near(gib: float, facts: AcceleratorFacts) -> bool:
    return abs(gib / facts.memory_gib - 1) <= 0.15


@functools.cache
def _facts(name: str, gib: float | None) -> AcceleratorFacts | None:
    """What is known of a model under any of the spellings of the files."""
    bare = re.sub(r"(?i)[-_](NVLink|SXM\d?|\d+GB?|BAREMETAL)(?=[-_]|$)", "", name)
    plain = re.sub(r"(?i)[-_ ]PCIe$|(?<=\d)S$", "", bare)
    for spelling in (name, bare, f"RTX{name}", plain):
        named = accelerator_named(spelling, gib)
        if named is not None:
            return accelerators()[named.key]
    return None


def _sizes(row: Row) -> _Sizes | str | None:
    """What the row says of accelerators; why it cannot be read, or None where it has none.

    ``GpuInfo`` is a dict as Python or JSON spells it, or a mix of both; only its numbers are read.
    """
    name, info = _model(row), (row.get("GpuInfo") or "")[:4000]
    count = number(row.get("AcceleratorCount"))
    if not name:
        return "an accelerator without a name" if count else None
    if count is None:
        count = _in_info(info, "Count")
    if count is None:
        return f"it has the accelerator {name}, and the row does not say how many"
    mib, total = _in_info(info, "SizeInMiB"), _in_info(info, "TotalGpuMemoryInMiB")
    if mib is not None and mib < LEAST_MIB:
        mib *= 1024
        total = None
    return _Sizes(name, count, mib, total)


def _in_info(info: str, name: str) -> float | None:
    found = re.search(rf"""["']{name}["']\s*:\s*([0-9.]+)""", info)
    return number(found[1]) if found else None


def _by_zone(rows: Sequence[Row], column: str) -> tuple[dict[str, str | None], bool]:
    """The price by zone, the lowest where several stand; and whether several did."""
    if len(rows) == 1:
        return {_plain(rows[0], "AvailabilityZone"): rows[0].get(column)}, False
    prices: dict[str, str | None] = {}
    twice = False
    for row in rows:
        zone, given = _plain(row, "AvailabilityZone"), row.get(column)
        amount, other = number(given), number(prices.get(zone))
        if amount is not None and other is not None and amount != other:
            twice = True
        if zone not in prices or (amount is not None and (other is None or amount < other)):
            prices[zone] = given
    return prices, twice


def _places(
    prices: Mapping[str, str | None],
) -> Iterator[tuple[str | None, str | None, str | None]]:
    """Zone, zones and price: one for all zones where the price is the same, else one for each."""
    if len(prices) == 1 or len({number(amount) for amount in prices.values()}) == 1:
        zones = sorted(zone for zone in prices if zone)
        yield None, ",".join(zones) or None, next(iter(prices.values()))
        return
    for zone, amount in prices.items():
        yield zone or None, None, amount


def _shape(row: Row) -> tuple[str | None, ...]:
    return (_model(row), *(row.get(name) for name in _SHAPE))


def _model(row: Row) -> str:
    """The accelerator, as a card where the name of the machine says so and its own says nothing."""
    name, kind = _plain(row, "AcceleratorName"), _plain(row, "InstanceType")
    return f"{name}-PCIe" if name and _PCIE.search(kind) and not _FORM.search(name) else name


def _plain(row: Row, name: str) -> str:
    return (row.get(name) or "").strip()


def _region(row: Row) -> str:
    """The region; of a place such as ``, US, NA`` the parts that are there."""
    parts = (part.strip() for part in _plain(row, "Region").split(","))
    return ", ".join(part for part in parts if part)
