"""The probe's way in: the only file in a folder that stands first on the child's PYTHONPATH.

Python runs it at start-up. It starts the probe, leaves sys.path as it was without this folder,
and hands over to the user's own sitecustomize. It must be readable for every Python that the
user's script may start, so it keeps to the oldest syntax.
"""

# mypy: ignore-errors

import os
import sys


def _start_probe(package):
    # what importlib.util is made of, for loading that takes as long as an empty Python's start
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import spec_from_file_location

    spec = spec_from_file_location(
        "underdog_probe",
        os.path.join(package, "__init__.py"),
        submodule_search_locations=[package],
    )
    module = module_from_spec(spec)
    sys.modules["underdog_probe"] = module
    spec.loader.exec_module(module)
    from underdog_probe.startup import start

    start(os.environ["UNDERDOG_RECORDS"])


def _hand_over(here):
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.curdir) != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


def _main():
    here = os.path.dirname(os.path.abspath(__file__))
    if os.environ.get("UNDERDOG_RECORDS") and sys.version_info >= (3, 8):
        try:
            _start_probe(os.path.dirname(here))
        except Exception as error:
            sys.stderr.write("underdog: the probe could not start (%r).\n" % (error,))  # noqa: UP031
    _hand_over(here)


_main()
