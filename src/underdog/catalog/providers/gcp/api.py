"""The pages of Google Cloud's APIs, and the credentials for them.

Sources: Compute Engine API v1 (machineTypes.aggregatedList, acceleratorTypes.aggregatedList),
Cloud Billing Catalog API v1 (services.skus.list).
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from underdog.catalog.http import Http
from underdog.catalog.providers._reading import optional_list, optional_text
from underdog.catalog.sources import FetchOptions, mapping
from underdog.errors import CatalogError, NotSetUpError

COMPUTE = "https://compute.googleapis.com/compute/v1"
BILLING = "https://cloudbilling.googleapis.com/v1"
SERVICES = {"Compute Engine": "6F81-5844-456A", "Cloud TPU": "E000-3F24-B8AA"}
SCOPES = (
    "https://www.googleapis.com/auth/compute.readonly",
    "https://www.googleapis.com/auth/cloud-billing.readonly",
)
MOST_PAGES = 2000
# What of an item is read, and so kept.
_MACHINE = (
    "accelerators",
    "architecture",
    "bundledLocalSsds",
    "deprecated",
    "guestCpus",
    "memoryMb",
    "name",
    "zone",
)
_ACCELERATOR = ("deprecated", "maximumCardsPerInstance", "name", "zone")
_SKU = ("category", "description", "pricingInfo", "serviceRegions")


def signed_in(http: Http) -> tuple[dict[str, str], str]:
    """Headers with an access token, and the project, by Google's application default credentials.

    Raises:
        CatalogError: the package google-auth is missing, or there are no credentials or no project.
    """
    try:
        auth, errors, transport = (
            importlib.import_module(f"google.auth{part}")
            for part in ("", ".exceptions", ".transport.urllib3")
        )
    except ImportError as error:
        raise NotSetUpError(
            "The catalog of Google Cloud needs the package 'google-auth'.",
            "pip install 'underdog[gcp]'",
        ) from error
    try:
        credentials, project = auth.default(scopes=list(SCOPES))
        credentials.refresh(transport.Request(http.pool("https://oauth2.googleapis.com")))
    except errors.GoogleAuthError as error:
        reason = " ".join(str(error).split())[:160]
        raise NotSetUpError(
            f"There are no credentials of Google Cloud: {reason}",
            "gcloud auth application-default login",
        ) from error
    if not project:
        raise NotSetUpError(
            "No project of Google Cloud is named, which its list of machine types needs.",
            "export GOOGLE_CLOUD_PROJECT=my-project",
        )
    headers = {"Authorization": f"Bearer {credentials.token}"}
    if quota := getattr(credentials, "quota_project_id", None):
        headers["X-Goog-User-Project"] = quota
    return headers, str(project)


def billing_headers(headers: dict[str, str]) -> dict[str, str]:
    """The headers for the billing catalog: an API key of the environment, if there is one."""
    key = os.environ.get("GOOGLE_API_KEY", "").strip()
    return {"X-Goog-Api-Key": key} if key else headers


def aggregated(
    http: Http, kind: str, project: str, headers: dict[str, str], options: FetchOptions
) -> list[Any]:
    """All ``machineTypes`` or ``acceleratorTypes`` of the zones of the regions wanted.

    Raises:
        CatalogError: an answer is not in the API's shape, or leads from page to page without end.
    """
    fields = _MACHINE if kind == "machineTypes" else _ACCELERATOR
    found: list[Any] = []
    url = f"{COMPUTE}/projects/{project}/aggregated/{kind}"
    params = {"maxResults": "500", "returnPartialSuccess": "true"}
    for page in _pages(http, url, params, headers):
        zones = mapping(page.get("items") or {}, f"gcp: items of {kind}")
        for zone, listed in zones.items():
            items = optional_list(mapping(listed, f"gcp: {zone}").get(kind), f"gcp: {zone}")
            if _wanted(zone, options.regions):
                found.extend(kept(item, fields) for item in items)
        options.progress(f"Google Cloud {kind}", len(found), None)
    return found


def skus(http: Http, headers: dict[str, str], options: FetchOptions) -> list[Any]:
    """The SKUs of Compute Engine and Cloud TPU that are parts of machines.

    Raises:
        CatalogError: an answer is not in the API's shape, or leads from page to page without end.
    """
    found: list[Any] = []
    for name, service in SERVICES.items():
        url = f"{BILLING}/services/{service}/skus"
        for page in _pages(http, url, {"pageSize": "5000"}, headers):
            items = optional_list(page.get("skus"), f"gcp: skus of {name}")
            found.extend(kept(item, _SKU) for item in items if _is_part(item))
            options.progress("Google Cloud SKUs", len(found), None)
    return found


def _pages(
    http: Http, url: str, params: dict[str, str], headers: dict[str, str]
) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    token = ""
    while True:
        asked = {**params, "pageToken": token} if token else params
        page = dict(mapping(http.json(url, asked, headers), f"gcp: the answer of '{url}'"))
        yield page
        token = optional_text(page.get("nextPageToken"), "gcp: nextPageToken")
        if not token:
            return
        if token in seen or len(seen) >= MOST_PAGES:
            raise CatalogError(f"'{url}' leads from page to page without end.")
        seen.add(token)


def _wanted(zone: str, regions: tuple[str, ...]) -> bool:
    name = zone.rpartition("/")[2]
    return not regions or name.rpartition("-")[0] in regions


def _is_part(sku: Any) -> bool:
    """Whether an SKU may be a part of a machine: the others, such as traffic, are most of them."""
    category = sku.get("category") if isinstance(sku, dict) else None
    if not isinstance(category, dict):
        return True
    return (
        category.get("resourceFamily") == "Compute" or category.get("resourceGroup") == "LocalSSD"
    )


def kept(item: Any, fields: tuple[str, ...]) -> Any:
    """The fields of an item that are read; equal texts share their memory."""
    if not isinstance(item, dict):
        return item
    return {
        name: sys.intern(value) if type(value) is str else value
        for name in fields
        if (value := item.get(name)) is not None
    }
