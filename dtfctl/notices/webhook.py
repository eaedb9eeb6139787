"""Posts the document on standard input to the URL in DTFCTL_WEBHOOK_URL; a process of its own, so that it can be ended.

The URL is often a secret: it stands in the environment, and in no message.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request

VARIABLE = "DTFCTL_WEBHOOK_URL"
TIMEOUT_S = 10.0


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST becomes a GET: the message would be lost, and its sender told that all is well."""

    def redirect_request(self, *_: object) -> None:
        return None


def main() -> None:
    url = os.environ[VARIABLE]
    request = urllib.request.Request(url, sys.stdin.buffer.read(), {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S) as response:
            response.read(1)
    except urllib.error.HTTPError as error:
        more = "; write the address to which it redirects" if 300 <= error.code < 400 else ""
        sys.exit(f"the server answers with HTTP status {error.code}{more}")
    except (urllib.error.URLError, OSError, ValueError) as error:
        sys.exit(str(getattr(error, "reason", error)) or type(error).__name__)


if __name__ == "__main__":
    main()
