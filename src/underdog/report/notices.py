"""Notices to people, by any of the services that apprise reaches. No URL of one is ever printed:
it holds tokens and passwords."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Sequence
from typing import Any

from underdog.errors import MissingPackageError, UsageError


class Notices:
    """Where notices go.

    Args:
        urls: as apprise reads them, such as ``slack://…``, ``mailto://…`` or ``json://host/path``.

    Raises:
        MissingPackageError: apprise is not installed.
        UsageError: a URL is none that apprise knows; its scheme and place are told, no more of it.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self._targets: list[tuple[str, Any]] = []
        if not urls:
            return
        try:
            import apprise
        except ModuleNotFoundError:
            raise MissingPackageError("A notice", "apprise", "notify") from None
        self._text = apprise.NotifyFormat.TEXT
        # its log lines may quote parts of a URL
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
        asset = apprise.AppriseAsset(app_id="underdog", app_desc="underdog", app_url="")
        for place, url in enumerate(urls, start=1):
            target = apprise.Apprise(asset=asset)
            with warnings.catch_warnings(action="ignore"):  # of its services' own imports
                known = target.add(url)
            if not known:
                raise UsageError(
                    f"The notice URL number {place} ({scheme_of(url)}://…) cannot be used.",
                    "apprise's documentation lists what each service's URL is made of.",
                )
            self._targets.append((scheme_of(url), target))

    def __len__(self) -> int:
        return len(self._targets)

    def send(self, title: str, body: str) -> list[str]:
        """Send to all; returns the schemes of those that did not take it."""
        failed = []
        for scheme, target in self._targets:
            with warnings.catch_warnings(action="ignore"):
                taken = target.notify(title=title, body=body, body_format=self._text)
            if not taken:
                failed.append(scheme)
        return failed


def scheme_of(url: str) -> str:
    """The service that a URL names; what has no scheme may be a secret as a whole."""
    found = re.match(r"([a-z][a-z0-9+.-]{0,30})://", url.strip(), re.IGNORECASE)
    return found[1].lower() if found else "?"
