"""What providers say when they give no machine, and what each of it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.refusals import NEXT, aws_quota, classify

SAID = {
    "no_capacity": [
        "An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation: "
        "We currently do not have sufficient p4d.24xlarge capacity in the Availability Zone you "
        "requested (us-east-1a). Our system will be working on provisioning additional capacity.",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: The zone 'projects/x/zones/us-central1-a' does "
        "not have enough resources available to fulfill the request.",
        'RESOURCE_EXHAUSTED: There is no more capacity in the zone "us-central1-b"; you can try in '
        "another zone where Cloud TPU Nodes are offered",
        "(AllocationFailed) Allocation failed. We do not have sufficient capacity for the "
        "requested VM size in this region.",
        "(ZonalAllocationFailed) Allocation failed. We do not have sufficient capacity for the "
        "requested VM size in this zone.",
        "(SkuNotAvailable) The requested VM size for resource 'Following SKUs have failed for "
        "Capacity Restrictions: Standard_NC24ads_A100_v4' is currently not available in location "
        "'eastus'. Please try another size or deploy to a different location.",
        "(OverconstrainedZonalAllocationRequest) Allocation failed.",
        "There are no longer any instances available with the requested specifications.",
        "instance-operations/launch/insufficient-capacity: Not enough capacity to fulfill launch "
        "request.",
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "SpotMaxPriceTooLow: Your Spot request price of 0.1 is lower than the minimum required",
        "Failed to acquire resources in all zones in us-east-1.",
    ],
    "quota": [
        "(VcpuLimitExceeded) You have requested more vCPU capacity than your current vCPU limit of "
        "0 allows for the instance bucket that the specified instance type belongs to.",
        "MaxSpotInstanceCountExceeded: Max spot instance count exceeded",
        "QUOTA_EXCEEDED: Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 0.0 in region us-central1.",
        "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.",
        "Quota limit 'TPUV5sPreemptibleLitepodPerProjectPerZoneForTPUAPI' has been exceeded. "
        "Limit: 0 in zone us-west4-a.",
        "(OperationNotAllowed) Operation could not be completed as it results in exceeding "
        "approved standardNCADSA100v4Family Cores quota. Additional details - Deployment Model: "
        "Resource Manager, Location: eastus, Current Limit: 0",
        "(QuotaExceeded) Operation could not be completed as it results in exceeding approved "
        "LowPriorityCores quota.",
        "InstanceLimitExceeded: You have requested more instances (1) than your current limit of 0",
        "(AssocGrpGRES)",
        "(QOSMaxGRESPerUser)",
    ],
    "not_offered": [
        "(Unsupported) Your requested instance type (p5.48xlarge) is not supported in your "
        "requested Availability Zone (us-east-1e). Please retry your request.",
        "Machine type with name 'a3-highgpu-8g' does not exist in zone 'europe-west1-b'.",
        "NotAvailableForSubscription: the size is not available for subscription 'x' in 'westus'",
        "sbatch: error: Batch job submission failed: Requested node configuration is not available",
        "Catalog does not contain any instances satisfying the request",
    ],
    "permission": [
        "An error occurred (UnauthorizedOperation) when calling the RunInstances operation: You "
        "are not authorized to perform this operation.",
        "An error occurred (ExpiredToken): The security token included in the request is expired",
        "Required 'compute.instances.create' permission for 'projects/x/zones/y/instances/z'",
        "(AuthorizationFailed) The client does not have authorization to perform action",
        'Unable to locate credentials. You can configure credentials by running "aws configure".',
        "OptInRequired: You are not subscribed to this service.",
        "Invalid API key",
    ],
    "malformed": [
        "InvalidParameterValue: Invalid value 'x' for InstanceType.",
        "Invalid value for field 'resource.machineType': 'zones/x/machineTypes/'.",
        "InvalidAMIID.NotFound: The image id '[ami-1]' does not exist",
        "(InvalidParameter) The value of parameter imageReference.id is invalid.",
    ],
    "transient": [
        "RequestLimitExceeded: Request limit exceeded.",
        "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service "
        "'compute.googleapis.com'",
        "(TooManyRequests) The request is being throttled.",
        "InternalError: An internal error has occurred.",
        "503 Service Unavailable",
        "Connection reset by peer",
    ],
    "unknown": ["", "something else went wrong", "Zweifelsfall"],
}


@pytest.mark.parametrize(("kind", "words"), [(k, w) for k, said in SAID.items() for w in said])
def test_what_providers_say(kind: str, words: str) -> None:
    refusal = classify(words)
    assert refusal.kind == kind
    assert refusal.next_step


@pytest.mark.parametrize(
    ("words", "quota"),
    [
        (SAID["quota"][2], "NVIDIA_A100_GPUS"),
        (SAID["quota"][4], "TPUV5sPreemptibleLitepodPerProjectPerZoneForTPUAPI"),
        (SAID["quota"][5], "standardNCADSA100v4Family Cores"),
        (SAID["quota"][8], "AssocGrpGRES"),
    ],
)
def test_the_quota_that_a_provider_names(words: str, quota: str) -> None:
    refusal = classify(words)
    assert refusal.quota == quota
    assert f"'{quota}'" in refusal.next_step


def test_the_quota_that_aws_does_not_name() -> None:
    refusal = classify(SAID["quota"][0], provider="aws", instance_type="p5.48xlarge")
    assert refusal.quota == "Running On-Demand P instances (L-417A185B)"
    spot = classify(SAID["quota"][1], provider="aws", instance_type="g6e.xlarge", spot=True)
    assert spot.quota == "All G and VT Spot Instance Requests (L-3819A6DF)"
    assert classify(SAID["quota"][0], instance_type="p5.48xlarge").quota is None
    for name, code in (
        ("m7i.large", "1216C47A"),
        ("trn1.2xlarge", "2C3B7624"),
        ("u-6tb1.x", "43DA4232"),
    ):
        assert code in str(aws_quota(name, False))
    assert aws_quota("", False) is None
    assert aws_quota("qqq.large", False) is None


@given(st.text(max_size=400), st.text(max_size=20), st.booleans())
def test_any_words_get_an_answer(words: str, instance_type: str, spot: bool) -> None:
    refusal = classify(words, provider="aws", instance_type=instance_type, spot=spot)
    assert refusal.kind in NEXT


def test_a_page_of_words_is_read_at_once() -> None:
    assert classify("quota " * 100_000).kind in NEXT
