"""What went wrong at AWS, as one message with the next thing to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from underdog.errors import CatalogError, NotSetUpError, did_you_mean

# error codes of the services, by what they mean
_DENIED = frozenset(
    {"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "OptInRequired"}
)
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
_REFUSED = frozenset(
    {
        "AuthFailure",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
# names of botocore's exceptions; the classes are there only with the package
_NO_CREDENTIALS = frozenset({"NoCredentialsError", "PartialCredentialsError"})
_NO_LOGIN = frozenset(
    {
        "CredentialRetrievalError",
        "LoginError",
        "SSOError",
        "SSOTokenLoadError",
        "TokenRetrievalError",
        "UnauthorizedSSOTokenError",
    }
)
# no connection, a proxy, a certificate, no answer in time
_NO_ANSWER = frozenset({"ConnectionError", "HTTPClientError"})


def missing_package() -> CatalogError:
    return NotSetUpError("Reading AWS needs the package 'boto3'.", "pip install 'underdog[aws]'")


def unknown_regions(wanted: Iterable[str], regions: dict[str, bool]) -> CatalogError | None:
    """The error for regions that are none or that the account has not enabled, if there are any.

    Args:
        regions: all that AWS has, and whether the account may use it.
    """
    names = list(wanted)
    unknown = [name for name in names if name not in regions]
    disabled = [name for name in names if regions.get(name) is False]
    if unknown:
        shown = ", ".join(f"'{name}'" for name in unknown)
        hints = " ".join(dict.fromkeys(did_you_mean(name, regions) for name in unknown))
        return CatalogError(f"AWS has no region {shown}.", hints)
    if disabled:
        shown = ", ".join(f"'{name}'" for name in disabled)
        hint = f"aws account enable-region --region-name {disabled[0]}"
        return CatalogError(f"The AWS account has not enabled the region {shown}.", hint)
    return None


def told(problems: Sequence[tuple[str, Exception]]) -> CatalogError:
    """The one error of what failed; all missing permissions at once.

    Args:
        problems: for each failed call, the IAM action that it needs, and the error.
    """
    denied = sorted({action for action, error in problems if _code(error) in _DENIED})
    others = [(action, error) for action, error in problems if _code(error) not in _DENIED]
    if others:
        return _told(*others[0])
    return CatalogError(
        f"The AWS credentials may not call {', '.join(denied)}.",
        "Attach the policy of docs/reference/aws.md to the user or role.",
    )


def _told(action: str, error: Exception) -> CatalogError:
    code, kinds = _code(error), {kind.__name__ for kind in type(error).__mro__}
    reason = " ".join(str(error).split())[:300]
    if kinds & _NO_CREDENTIALS:
        return NotSetUpError(f"AWS was not asked: {_lowered(reason)}.", "aws configure")
    if code in _EXPIRED or kinds & _NO_LOGIN:
        hint = "aws sso login (or renew the AWS_SESSION_TOKEN)"
        return CatalogError(f"The AWS credentials have expired: {reason}", hint)
    if code in _REFUSED:
        hint = "aws sts get-caller-identity (shows whose credentials are used)"
        return CatalogError(f"AWS did not accept the credentials: {reason}", hint)
    if "ProfileNotFound" in kinds:
        return CatalogError(
            f"AWS was not asked: {_lowered(reason)}.", "aws configure list-profiles"
        )
    if kinds & _NO_ANSWER:
        hint = "Try again; behind a proxy set HTTPS_PROXY."
        return CatalogError(f"AWS does not answer {action}: {reason}", hint)
    return CatalogError(f"AWS could not answer {action}: {reason}", "Try again later.")


def _lowered(reason: str) -> str:
    return (reason[:1].lower() + reason[1:]).rstrip(".")


def _code(error: Exception) -> str:
    response: dict[str, Any] = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))
