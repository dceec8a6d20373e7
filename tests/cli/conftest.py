"""Lets the tests of this folder import the offers and trials of the tests of the core."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
