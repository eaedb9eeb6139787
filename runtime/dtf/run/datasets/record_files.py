"""A dataset of strings written to a TFRecord file."""

from __future__ import annotations

import zlib

import numpy as np

from dtf.run.datasets.dataset import Dataset, Scope
from dtf.run.datasets.sources import check_compression
from dtf.wire import filesystems
from dtf.wire.events import record_bytes
from dtf.wire.files import file_errors

__all__ = ["write_records"]

_WINDOW_BITS = {"ZLIB": 15, "GZIP": 31}


def write_records(dataset: Dataset, path: str, compression: str, scope: Scope) -> None:
    """Writes the elements, string scalars, as the records of one file, which is replaced."""
    check_compression(compression)
    compressor = zlib.compressobj(wbits=_WINDOW_BITS[compression]) if compression else None
    elements = dataset.start(scope)
    try:
        with file_errors(path), filesystems.open(path, "wb") as file:
            for (record,) in elements:
                scope.check()
                data = record_bytes(np.asarray(record, object).item())
                file.write(compressor.compress(data) if compressor else data)
            if compressor:
                file.write(compressor.flush())
    finally:
        elements.close()
