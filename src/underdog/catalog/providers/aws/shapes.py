"""The shapes of AWS's answers, as far as they are read here; everything may be missing.

Names are those of the EC2, Price List and Savings Plans APIs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from underdog.catalog.sources import Raw
from underdog.errors import CatalogError

Shape = TypeVar("Shape", bound=msgspec.Struct)
Number = float | None
Text = str | None


class Memory(msgspec.Struct):
    size_mib: Number = msgspec.field(name="SizeInMiB", default=None)


class Device(msgspec.Struct, rename="pascal"):
    """A kind of accelerator: a GPU, a Neuron, inference, FPGA or media device."""

    name: Text = None
    count: Number = None
    gpu_partition_size: Number = None
    logical_gpu_count: Number = None
    memory_info: Memory | None = None


class Gpus(msgspec.Struct):
    devices: list[Device] | None = msgspec.field(name="Gpus", default=None)
    total_mib: Number = msgspec.field(name="TotalGpuMemoryInMiB", default=None)


class Neurons(msgspec.Struct):
    devices: list[Device] | None = msgspec.field(name="NeuronDevices", default=None)


class Fpgas(msgspec.Struct):
    devices: list[Device] | None = msgspec.field(name="Fpgas", default=None)


class Accelerators(msgspec.Struct):
    devices: list[Device] | None = msgspec.field(name="Accelerators", default=None)


class Card(msgspec.Struct, rename="pascal"):
    baseline_bandwidth_in_gbps: Number = None
    interface_types: list[str] | None = None


class Efa(msgspec.Struct, rename="pascal"):
    maximum_efa_interfaces: Number = None


class Network(msgspec.Struct, rename="pascal"):
    network_performance: Text = None
    network_cards: list[Card] | None = None
    efa_supported: bool | None = None
    efa_info: Efa | None = None


class Disk(msgspec.Struct, rename="pascal"):
    type: Text = None


class Storage(msgspec.Struct, rename="pascal"):
    total_size_gb: Number = msgspec.field(name="TotalSizeInGB", default=None)
    disks: list[Disk] | None = None
    nvme_support: Text = None


class Processor(msgspec.Struct, rename="pascal"):
    supported_architectures: list[str] | None = None
    sustained_clock_speed_in_ghz: Number = None


class Vcpus(msgspec.Struct):
    vcpus: Number = msgspec.field(name="DefaultVCpus", default=None)
    threads_per_core: Number = msgspec.field(name="DefaultThreadsPerCore", default=None)


class InstanceType(msgspec.Struct, rename="pascal"):
    """An item of DescribeInstanceTypes."""

    instance_type: str
    supported_usage_classes: list[str] | None = None
    vcpu_info: Vcpus | None = msgspec.field(name="VCpuInfo", default=None)
    memory_info: Memory | None = None
    processor_info: Processor | None = None
    network_info: Network | None = None
    instance_storage_supported: bool | None = None
    instance_storage_info: Storage | None = None
    gpu_info: Gpus | None = None
    neuron_info: Neurons | None = None
    inference_accelerator_info: Accelerators | None = None
    fpga_info: Fpgas | None = None
    media_accelerator_info: Accelerators | None = None


class Offering(msgspec.Struct, rename="pascal"):
    """An item of DescribeInstanceTypeOfferings by availability zone."""

    instance_type: str
    location: str


class SpotPrice(msgspec.Struct, rename="pascal"):
    """An item of DescribeSpotPriceHistory; ``timestamp`` is ISO 8601."""

    instance_type: str
    availability_zone: str
    timestamp: str
    product_description: Text = None
    spot_price: str | float | None = None


class Attributes(msgspec.Struct, rename="camel"):
    """Attributes of a product of the price list; every value is text."""

    instance_type: Text = None
    instance_name: Text = None
    region_code: Text = None
    location_type: Text = None
    operating_system: Text = None
    tenancy: Text = None
    pre_installed_sw: Text = None
    capacitystatus: Text = None
    marketoption: Text = None
    operation: Text = None
    component: Text = None
    usagetype: Text = None
    vcpu: Text = None
    memory: Text = None
    gpu: Text = None
    physical_processor: Text = None


class Product(msgspec.Struct, rename="camel"):
    product_family: Text = None
    attributes: Attributes | None = None


class Dimension(msgspec.Struct, rename="camel"):
    """One part of a price: so much for an hour, or once (``unit`` Quantity)."""

    unit: Text = None
    price_per_unit: dict[str, str | float | None] | None = None


class TermAttributes(msgspec.Struct, rename="pascal"):
    lease_contract_length: Text = None
    offering_class: Text = None
    purchase_option: Text = None


class Term(msgspec.Struct, rename="camel"):
    price_dimensions: dict[str, Dimension] | None = None
    term_attributes: TermAttributes | None = None


class Terms(msgspec.Struct, rename="pascal"):
    on_demand: dict[str, Term] | None = None
    reserved: dict[str, Term] | None = None


class PriceItem(msgspec.Struct):
    """An item of GetProducts, which gives each as JSON text."""

    product: Product | None = None
    terms: Terms | None = None


class Plan(msgspec.Struct, rename="camel"):
    payment_option: Text = None
    plan_type: Text = None
    duration_seconds: Number = None
    currency: Text = None


class Property(msgspec.Struct):
    name: Text = None
    value: Text = None


class PlanRate(msgspec.Struct, rename="camel"):
    """An item of DescribeSavingsPlansOfferingRates."""

    savings_plan_offering: Plan | None = None
    rate: str | float | None = None
    unit: Text = None
    product_type: Text = None
    usage_type: Text = None
    properties: list[Property] | None = None


def read(raw: Raw, kind: str, shape: type[Shape]) -> Iterator[Shape]:
    """The documents of a kind; one may be JSON text, which takes less memory.

    Raises:
        CatalogError: a document has another shape; names row and field.
    """
    decoder = msgspec.json.Decoder(shape)
    documents = raw.items(kind)
    if not isinstance(documents, list):
        raise CatalogError(f"aws: '{kind}' is {type(documents).__name__}, no list of documents.")
    for row, document in enumerate(documents):
        try:
            if isinstance(document, str | bytes):
                found = decoder.decode(document)
            else:
                found = msgspec.convert(document, shape)
        except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError) as error:
            raise CatalogError(_told(kind, row, document, str(error))) from error
        yield found


def _told(kind: str, row: int, document: Any, error: str) -> str:
    reason, _, path = error.partition(" - at ")
    missing = re.search(r"missing required field `(\w+)`", reason)
    field = path.strip("`").removeprefix("$").removeprefix(".")
    if missing:
        field = f"{field}.{missing[1]}".removeprefix(".")
    name = document.get("InstanceType") if isinstance(document, dict) else None
    of = f" ({name})" if isinstance(name, str) else ""
    at = f", field '{field}'" if field else ""
    return f"aws: row {row} of '{kind}'{of}{at} cannot be read: {reason}."
