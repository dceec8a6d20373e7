"""Offers from the world: snapshot, providers, facts, and files of the user's."""

from __future__ import annotations

from underdog.model import Price


def machine_price(
    provider: str, region: str, instance_type: str, purchase: str = "on-demand"
) -> Price:
    """What a machine costs by the newest catalog; see ``underdog.catalog.snapshot``."""
    from underdog.catalog import archive, snapshot  # on use: they load DuckDB

    return snapshot.machine_price(provider, region, instance_type, purchase, archive.load())
