"""Conformance suites for the authors of plug-ins."""
