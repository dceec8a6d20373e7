"""Why SkyPilot gave no machine, from the class of its error and all that was said.

The classes are taken by their names, so that this needs no SkyPilot. ``ResourcesUnavailableError``
stands for many things: with an empty history nothing was asked for, since nothing fits; otherwise
the words of the provider, which stand in the log of the launch alone, tell a lack of machines from
a lack of rights.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from underdog.core.refusals import Refusal, classify
from underdog.errors import RefusedError, RunnerError, UnderdogError, UsageError

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# lines of a log that may hold the provider's words
_TELLING = re.compile(
    r"(?i)error|exception|insufficien|quota|exceed|denied|capacity|unavailable|limit|not (found|"
    r"supported|offered|authorized)|expired|credential|forbidden|stockout|exhausted"
)
# those that do hold them (SkyPilot's cloud_vm_ray_backend.py; botocore; Google's client)
_THEIRS = re.compile(r"(?i)handler error:|^reason:|an error occurred \(|httperror|provisionererror")
# SkyPilot's own words, which it says whatever the reason was
_SAID_ALWAYS = re.compile(
    r"(?i)failed to acquire resources in|trying other potential|resourcesunavailableerror|"
    r"failed to provision all possible|to keep retrying|view logs|requests? .{0,40}failed"
)
_NOT_SOLD = re.compile(r"(?i)no instance type |invalid (instance type|region|zone|accelerator)")
_OTHER = "SkyPilot's catalog has nothing of the kind there: sky gpus list, or another offer."
_SHOWN_LINES, _SHOWN_CHARACTERS = 6, 1200

_PERMISSION = {
    "NoCloudAccessError",
    "CloudUserIdentityError",
    "InvalidCloudCredentials",
    "ClusterOwnerIdentityMismatchError",
    "PermissionDeniedError",
    "NoWorkspaceAccessError",
    "UserRequestRejectedByPolicy",
    "ApiServerAuthenticationError",
}
_MALFORMED = {
    "InvalidSkyPilotConfigError",
    "InvalidCloudConfigs",
    "InvalidClusterNameError",
    "NotSupportedError",
    "ResourcesMismatchError",
    "KubernetesValidationError",
    "ValueError",
}
_UNREACHABLE = {"ApiServerConnectionError", "APIVersionMismatchError", "APINotSupportedError"}
_NO_NETWORK = {"NetworkError", "ConnectionError", "ServerTemporarilyUnavailableError"}


def plain(text: str) -> str:
    """Without colours."""
    return _COLOURS.sub("", text)


def class_names(error: BaseException) -> set[str]:
    """The names of its class and of those above it."""
    return {kind.__name__ for kind in type(error).__mro__}


def is_gone(error: BaseException) -> bool:
    """Whether it says that there is no such cluster, or no working one any more."""
    return bool(class_names(error) & {"ClusterDoesNotExist", "ClusterNotUpError"})


def is_cut_off(error: BaseException) -> bool:
    """Whether it says that SkyPilot itself cannot be asked now."""
    return bool(class_names(error) & (_UNREACHABLE | _NO_NETWORK))


def understood(
    error: BaseException,
    said: str = "",
    *,
    provider: str = "",
    instance_type: str = "",
    spot: bool = False,
) -> UnderdogError:
    """The error of ours for one of SkyPilot's.

    Args:
        said: the log of the request that failed.
        provider: of the offer, with the type and whether it is spot, to name the quota.
    """
    if isinstance(error, UnderdogError):
        return error
    names, words = class_names(error), plain(str(error)).strip() or type(error).__name__

    def refusal(text: str) -> Refusal:
        return classify(text, provider=provider, instance_type=instance_type, spot=spot)

    if "ResourcesUnavailableError" in names:
        return _unavailable(error, words, plain(said), refusal)
    if names & _UNREACHABLE:
        return RunnerError(f"SkyPilot's API server cannot be used: {words}", "sky api info")
    if names & _PERMISSION:
        check = f"sky check {provider}".strip()
        return RefusedError(words, "permission", f"Look at the credentials: {check}")
    if names & _NO_NETWORK or words.startswith("requests error (ConnectionError)"):
        return RunnerError(
            f"SkyPilot has no network for it: {_shown(words)}",
            "It fetches its catalog from the web, unless ~/.sky/catalogs holds one.",
        )
    reasons = getattr(error, "reasons", None)  # of ProvisionPrechecksError
    if reasons:
        return understood(reasons[0], said, provider=provider, instance_type=instance_type)
    if names & _MALFORMED and _NOT_SOLD.search(words):
        return RefusedError(_shown(words), "not_offered", _OTHER)
    if names & _MALFORMED:
        return UsageError(f"SkyPilot does not take it: {_shown(words)}")
    found = refusal(_causes(words))
    if found.kind in ("no_capacity", "quota", "permission", "not_offered"):
        return RefusedError(_shown(words), found.kind, found.next_step)
    return RunnerError(f"SkyPilot could not run it: {_last_lines(words)}", "sky api status")


def _unavailable(
    error: BaseException, words: str, said: str, refusal: Callable[[str], Refusal]
) -> UnderdogError:
    history = [plain(str(e)) for e in getattr(error, "failover_history", None) or ()]
    if not history:
        found = refusal(words)
        kind = "not_offered" if found.kind == "unknown" else found.kind
        return RefusedError(_shown(words), kind, _OTHER)
    causes = _causes("\n".join([said, *history, words]))
    found = refusal(causes)
    if found.kind != "unknown":
        return RefusedError(_shown(causes), found.kind, found.next_step)
    if causes:  # it was tried and refused, in words that nobody knows yet
        return RefusedError(_shown(causes), "unknown", found.next_step)
    found = refusal("\n".join(history))
    kind = "no_capacity" if found.kind == "unknown" else found.kind
    return RefusedError(_shown("\n".join(dict.fromkeys(history))), kind, found.next_step)


def _causes(text: str) -> str:
    """The lines that hold the provider's own words, or else those that may; each once."""
    lines = list(dict.fromkeys(_telling(text)))
    return "\n".join([line for line in lines if _THEIRS.search(line)] or lines)


def _telling(text: str) -> Iterator[str]:
    for line in plain(text).splitlines():
        line = line.strip(" \t│├└─⨯⚙︎")
        told = _TELLING.search(line) or _THEIRS.search(line)
        if told and not _SAID_ALWAYS.search(line):
            yield line


def _shown(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[:_SHOWN_LINES])[:_SHOWN_CHARACTERS]


def _last_lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-_SHOWN_LINES:])[-_SHOWN_CHARACTERS:]
