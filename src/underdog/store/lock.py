"""One exploration of a study at a time, on this host: a lock that ends with its process."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from underdog import config
from underdog.errors import StoreError


@contextmanager
def only_one(study: str, store: str | None) -> Iterator[None]:
    """Hold the study of that store while the block runs.

    Args:
        study: its id.
        store: the store's URL or path as the user gave it.

    Raises:
        StoreError: another process has it, or the data folder cannot be written.
    """
    where = hashlib.sha256(config.store_url(store).encode(errors="surrogatepass")).hexdigest()[:8]
    path = config.data_folder() / "studies" / f"{study}-{where}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    except OSError as error:
        raise StoreError(
            f"'{path}' cannot be written: {error.strerror}.",
            "Name another data folder: XDG_DATA_HOME=/path underdog explore …",
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise StoreError(
                f"The study '{study}' is being explored already, by process {file.read().strip()}.",
                "Wait for it or end it; what it measured is kept, and a rerun goes on from there.",
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
