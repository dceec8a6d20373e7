"""What SkyPilot's errors are taken for. Those of Slurm were recorded from SkyPilot 0.14.1."""

from __future__ import annotations

import pytest

from underdog.errors import RefusedError, RunnerError, UnderdogError, UsageError
from underdog.runners._skyerrors import is_gone, plain, understood


class ResourcesUnavailableError(Exception):
    def __init__(self, message: str, failover_history: list[Exception] | None = None) -> None:
        super().__init__(message)
        self.failover_history = failover_history or []


def kind(name: str, base: type[Exception] = Exception) -> type[Exception]:
    return type(name, (base,), {})


FULL = ResourcesUnavailableError(
    "\x1b[31mFailed to provision all possible launchable resources.\x1b[0m Relax the task's "
    "resource requirements: 1x Slurm(cpus=2)\nTo keep retrying until the cluster is up, use the "
    "`--retry-until-up` flag.\nReasons for provision failures (for details, please check the log "
    "above):\nProvision failures (tried 2 infra):\n\n✗ Slurm (trycluster) — (cpus=2, mem=0, ...)\n"
    "  Failed to acquire resources in main for {Slurm(cpus=2)}. \n",
    [
        ResourcesUnavailableError("Failed to acquire resources in main for {Slurm(cpus=2)}. "),
        ResourcesUnavailableError("Failed to acquire resources in both for {Slurm(cpus=2)}. "),
    ],
)
FULL_SAID = """\
Some Slurm cluster(s) do not track memory as a consumable resource: trycluster (CR_CORE). --mem \
will be omitted from sbatch, and Slurm will use its default allocation.
⚙︎ Launching on Slurm trycluster (both).
sky.exceptions.ResourcesUnavailableError: Failed to acquire resources in both for {Slurm(cpus=2)}.

↺ Trying other potential resources.
⨯ Failed to provision resources. View logs: sky logs --provision underdog-t1796047624
"""
NOTHING = ResourcesUnavailableError(
    "Catalog does not contain any instances satisfying the request: 1x Slurm([Spot], cpus=1, "
    "region=trycluster).\nTo fix: relax or change the resource requirements.\n\nHint: \x1b[1msky "
    "gpus list\x1b[0m to list available accelerators.\n"
)
AWS_WORDS = "Failed to acquire resources in all zones in us-east-1 for {AWS(p5.48xlarge)}. "


def aws(reason: str) -> tuple[Exception, str]:
    error = ResourcesUnavailableError("no", [ResourcesUnavailableError(AWS_WORDS)])
    return error, f"⚙︎ Launching on AWS us-east-1 (us-east-1a).\nAWS handler error: {reason}\n"


NO_ROOM = (
    "An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation: We "
    "currently do not have sufficient p5.48xlarge capacity in the Availability Zone you requested"
)
QUOTA = (
    "An error occurred (VcpuLimitExceeded) when calling the RunInstances operation: You have "
    "requested more vCPU capacity than your current vCPU limit of 0 allows"
)
EXPIRED = (
    "An error occurred (ExpiredToken) when calling the DescribeInstances operation: The security "
    "token included in the request is expired"
)
RIGHTS = (
    "An error occurred (UnauthorizedOperation) when calling the RunInstances operation: You are "
    "not authorized to perform this operation."
)
IAM = "An error occurred (NoSuchEntity) when calling the GetInstanceProfile operation: not there"


@pytest.mark.parametrize(
    ("error", "said", "expected", "words"),
    [
        (FULL, FULL_SAID, "no_capacity", "Failed to acquire resources in main"),
        (NOTHING, "", "not_offered", "Catalog does not contain any instances"),
        (*aws(NO_ROOM), "no_capacity", "InsufficientInstanceCapacity"),
        (*aws(QUOTA), "quota", "VcpuLimitExceeded"),
        (*aws(EXPIRED), "permission", "ExpiredToken"),
        (*aws(RIGHTS), "permission", "UnauthorizedOperation"),
        (*aws(IAM), "unknown", "NoSuchEntity"),  # the class alone says no capacity
        (
            ResourcesUnavailableError(
                "no",
                [
                    ResourcesUnavailableError(
                        "Failed to acquire resources in all zones in us-central1 for {GCP(a2)}.\n"
                        "Reason: [{'code': 'ZONE_RESOURCE_POOL_EXHAUSTED', 'message': 'the zone "
                        "does not have enough resources available'}]"
                    )
                ],
            ),
            "",
            "no_capacity",
            "ZONE_RESOURCE_POOL_EXHAUSTED",
        ),
        (kind("NoCloudAccessError")("Cloud access is not set up."), "", "permission", "not set up"),
        (kind("InvalidCloudCredentials")("expired"), "", "permission", "expired"),
    ],
)
def test_a_refusal_has_the_providers_words_and_what_they_mean(
    error: Exception, said: str, expected: str, words: str
) -> None:
    found = understood(error, said, provider="aws", instance_type="p5.48xlarge")
    assert isinstance(found, RefusedError)
    assert found.kind == expected
    assert words in found.message
    assert "\x1b" not in found.message
    assert found.hint


def test_a_quota_is_named() -> None:
    found = understood(*aws(QUOTA), provider="aws", instance_type="p5.48xlarge", spot=True)
    assert "All P Spot Instance Requests (L-7212CCBC)" in (found.hint or "")


@pytest.mark.parametrize(
    ("error", "expected", "words", "hint"),
    [
        (
            kind("ApiServerConnectionError", RuntimeError)("Could not connect to the server"),
            RunnerError,
            "API server cannot be used: Could not connect",
            "sky api info",
        ),
        (
            kind("CloudError")(
                "requests error (ConnectionError): HTTPSConnectionPool(host='example.org', "
                "port=443): Max retries exceeded with url: /accelerators.csv"
            ),
            RunnerError,
            "has no network",
            "~/.sky/catalogs",
        ),
        (
            kind("InvalidSkyPilotConfigError", ValueError)(
                "Invalid resources YAML: Found unsupported field 'foo'."
            ),
            UsageError,
            "does not take it: Invalid resources YAML: Found unsupported field 'foo'",
            None,
        ),
        (
            ValueError("Cluster nope not found in Slurm config. Available: ['trycluster']"),
            UsageError,
            "Cluster nope not found",
            None,
        ),
        (
            RuntimeError(
                "Failed to run setup commands on an instance. (exit code 1). Error: ===== stdout "
                "===== \nwarning: x\nerror: Failed to inspect Python interpreter"
            ),
            RunnerError,
            "could not run it: Failed to run setup commands",
            "sky api status",
        ),
    ],
)
def test_other_errors_name_the_next_command(
    error: Exception, expected: type[UnderdogError], words: str, hint: str | None
) -> None:
    found = understood(error)
    assert type(found) is expected
    assert words in found.message
    assert (hint or "") in (found.hint or "")


def test_reasons_of_a_check_before_the_launch_are_taken_out() -> None:
    error = kind("ProvisionPrechecksError")("")
    vars(error)["reasons"] = [kind("NoCloudAccessError")("AWS is disabled")]
    found = understood(error)
    assert isinstance(found, RefusedError)
    assert (found.kind, found.message) == ("permission", "AWS is disabled")


def test_an_error_of_ours_stays_what_it_is() -> None:
    error = UsageError("no")
    assert understood(error) is error


def test_what_is_gone() -> None:
    assert is_gone(kind("ClusterDoesNotExist", ValueError)("x"))
    assert not is_gone(ValueError("x"))
    assert plain("\x1b[31mred\x1b[0m\x1b[?25h") == "red"
