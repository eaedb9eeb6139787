"""Lines of JSON in and out, and what comes after them as it is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

LINE_BYTES_MAX = 64 << 20


class Lines:
    """Whole lines from a descriptor, and what comes after them as it is."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.rest = b""

    def wait(self) -> bytes:
        """The next line, b"" at the end."""
        while b"\n" not in self.rest:
            data = os.read(self.descriptor, 1 << 16)
            if not data or len(self.rest) > LINE_BYTES_MAX:
                return b""
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def take(self) -> list[bytes] | None:
        """The whole lines that are there; None at the end."""
        try:
            data = os.read(self.descriptor, 1 << 16)
        except BlockingIOError:
            return []
        if not data or len(self.rest) > LINE_BYTES_MAX:
            return None
        *whole, self.rest = (self.rest + data).split(b"\n")
        return whole

    def read(self, size: int) -> bytes:
        """For tarfile: bytes."""
        if not self.rest:
            return os.read(self.descriptor, size)
        data, self.rest = self.rest[:size], self.rest[size:]
        return data


def write_line(document: Mapping[str, Any]) -> None:
    data = json.dumps(document).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]
