"""A wire that is slow and loses frames, between two interfaces: `python bad_wire.py A B DELAY_MS LOSS`.

For kernels without netem. The headers of offloads (segmentation, checksums) go along with each frame, as the two ends
may leave both to each other. Which frames are lost is the same each time.
"""

from __future__ import annotations

import collections
import random
import select
import socket
import sys
import time

ETH_P_ALL = 3
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
FRAME_BYTES_MAX = 1 << 17


def main() -> None:
    first, second, delay_ms, loss = sys.argv[1:]
    ends = [open_end(first), open_end(second)]
    chance = random.Random(0)
    waiting: collections.deque[tuple[float, int, bytes]] = collections.deque()
    print("ready", flush=True)
    while True:
        patience_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for readable in select.select(ends, [], [], patience_s)[0]:
            frame = readable.recv(FRAME_BYTES_MAX)
            if chance.random() >= float(loss):
                waiting.append((time.monotonic() + float(delay_ms) / 1000, 1 - ends.index(readable), frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, frame = waiting.popleft()
            try:
                ends[end].send(frame)
            except OSError:
                continue


def open_end(name: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.bind((name, ETH_P_ALL))
    return end


if __name__ == "__main__":
    main()
