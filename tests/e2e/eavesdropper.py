"""Listens to everything that passes the interfaces of its network namespace, until its input ends; needs to be root.

Prints "listening", and in the end as JSON how many bytes passed and how often the pattern was among them:
`eavesdropper.py HEX`.
"""

import json
import selectors
import socket
import sys

ALL_PROTOCOLS = 3


def main():
    pattern = bytes.fromhex(sys.argv[1])
    heard, found = 0, 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS)) as ear:
        ear.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 20)
        selector = selectors.DefaultSelector()
        selector.register(ear, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        print("listening", flush=True)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if ear in ready:
                packet = ear.recv(1 << 17)
                heard += len(packet)
                found += pattern in packet
            elif sys.stdin in ready:
                break
    print(json.dumps({"heard": heard, "found": found}))


if __name__ == "__main__":
    main()
