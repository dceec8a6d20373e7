"""``python -m underdog``."""

from underdog.cli import main

main()
