"""Bundled data: the snapshot of offers, and facts about accelerators, processors and regions."""
