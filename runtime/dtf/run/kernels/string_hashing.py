"""Kernels that hash strings into buckets, and fingerprints of rows. The hashes are in `run/lib/fingerprints`."""

from __future__ import annotations

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, scalar
from dtf.run.kernels.string import each_string
from dtf.run.lib.fingerprints import fingerprint64, murmur64, siphash


@kernel("StringToHashBucketFast")
def _(node: KernelNode) -> Function:
    buckets = node.attr("num_buckets")
    return lambda values: each_string(lambda value: fingerprint64(value) % buckets, values, np.int64)


@kernel("StringToHashBucket")
def _(node: KernelNode) -> Function:
    buckets = node.attr("num_buckets")
    return lambda values: each_string(lambda value: murmur64(value) % buckets, values, np.int64)


@kernel("StringToHashBucketStrong")
def _(node: KernelNode) -> Function:
    buckets, key = node.attr("num_buckets"), tuple(node.attr("key"))
    if len(key) != 2:
        raise invalid("Key must have 2 elements")
    return lambda values: each_string(lambda value: siphash(value, key) % buckets, values, np.int64)


@kernel("Fingerprint")
def _(node: KernelNode) -> Function:
    def fingerprint(data: np.ndarray, method: np.ndarray) -> np.ndarray:
        if as_text(scalar(method, "`method`")) != "farmhash64":
            raise invalid(f"Unsupported fingerprint method: {as_text(method.item())}")
        if not np.ndim(data):
            raise invalid(f"`data` should have at least one dimension, got {data}")
        rows = len(data)
        if data.dtype == object:
            hashes = [fingerprint64(value).to_bytes(8, "little") for value in data.ravel()]
            if data.size == rows:
                return np.frombuffer(b"".join(hashes), np.uint8).reshape(rows, 8)
            per_row = len(hashes) // max(rows, 1)
            contents = [b"".join(hashes[row * per_row : (row + 1) * per_row]) for row in range(rows)]
        else:
            contents = [row.tobytes() for row in data]
        made = b"".join(fingerprint64(content).to_bytes(8, "little") for content in contents)
        return np.frombuffer(made, np.uint8).reshape(rows, 8)

    return fingerprint
