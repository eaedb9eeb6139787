"""Whether a master of Spark answers at an address, before Spark is started. Needs nothing but Python."""

from __future__ import annotations

import os
import re
import shutil
import socket
from urllib.parse import urlsplit

PROBE_S = 5.0
_MASTER = re.compile(r"spark://|k8s://|mesos://|yarn(-|$)|local(-cluster)?(\[|$)")
PAGE_S = 2.0
USUAL_PORT = 7077


def probe(master: str) -> None:
    """Raises RuntimeError when no master answers, when Java is missing, and when Spark does not know the master's form.
    Spark itself tries for minutes to reach a master, and its errors do not name the other two causes."""
    if not _MASTER.match(master):
        known = "spark://HOST:7077, local[N], yarn, k8s://HOST:PORT"
        raise RuntimeError(f"{master} is no master of Spark; masters are {known} (engine.spark.master)")
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        to_do = "install it (Debian: default-jre-headless), or set JAVA_HOME"
        raise RuntimeError(f"Spark needs Java, and there is no java: {to_do}")
    if not master.startswith("spark://"):
        return
    errors = []
    for each in master.removeprefix("spark://").split(","):
        place = urlsplit(f"//{each}")
        try:
            port = place.port or USUAL_PORT
            with socket.create_connection((place.hostname or "", port), PROBE_S) as connection:
                if port == USUAL_PORT or not is_web_page(connection):
                    return
            errors.append(f"a web server answers at {each}; a master of Spark usually has the port {USUAL_PORT}")
        except (OSError, ValueError) as error:
            errors.append(f"no Spark answers at {each}: {getattr(error, 'strerror', None) or error}")
    raise RuntimeError(errors[0])


def is_web_page(connection: socket.socket) -> bool:
    """Whether it is the master's web page that answers, or another one. A master says nothing to such a request."""
    try:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        connection.settimeout(PAGE_S)
        return connection.recv(5) == b"HTTP/"
    except OSError:
        return False
