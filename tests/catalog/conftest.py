"""Lets the tests of this folder import their own helpers, and the offers and trials of the core."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
