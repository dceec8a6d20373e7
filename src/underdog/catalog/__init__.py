"""Offers from the world: snapshot, providers, quality."""
