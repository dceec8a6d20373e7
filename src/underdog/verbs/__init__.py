"""One file per capability: wires adapters to the core. This is the Python API."""
