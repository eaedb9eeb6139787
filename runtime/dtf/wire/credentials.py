"""Who this process is to the other tasks of a secured cluster: its key, its certificate, and whom it trusts.

    DTF_TLS_CA     file with the certificate of the cluster's authority
    DTF_TLS_CERT   file with this task's certificate, which that authority has signed
    DTF_TLS_KEY    file with its private key

All three name PEM files; dtfctl makes and hands them out where the cluster file says `security: tls`. Where they are
set, servers and sessions of this process speak mutual TLS and nothing else: both ends show a certificate of the
cluster's authority, and a server's must name the host at which it is reached. Owns how they are read; what is wrapped
in TLS is for rpc and channel to say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dtf.wire import errors

if TYPE_CHECKING:
    import ssl

CA_VARIABLE = "DTF_TLS_CA"
CERTIFICATE_VARIABLE = "DTF_TLS_CERT"
KEY_VARIABLE = "DTF_TLS_KEY"
VARIABLES = (CA_VARIABLE, CERTIFICATE_VARIABLE, KEY_VARIABLE)

_COMMON_NAME = b"\x06\x03\x55\x04\x03"
"""The object identifier of a name's common name, 2.5.4.3, as DER has it."""


@dataclass(frozen=True)
class Credentials:
    """Contents of the three files. Never printed: the key is among them."""

    ca: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    paths: tuple[str, str, str] = ("", "", "")

    @cached_property
    def names(self) -> tuple[str, str]:
        """(cluster, task) as this process's own certificate has them."""
        import ssl

        return names_of(ssl.PEM_cert_to_DER_cert(self.certificate.decode()))

    @cached_property
    def client_context(self) -> ssl.SSLContext:
        """For connections that this process makes: the server's name is checked."""
        import ssl

        context = self._context(ssl.PROTOCOL_TLS_CLIENT)
        context.set_alpn_protocols(["h2"])  # gRPC's servers insist on it, the channel's do not mind
        return context

    @cached_property
    def server_context(self) -> ssl.SSLContext:
        """For connections that others make: they must show a certificate."""
        import ssl

        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_REQUIRED
        context.num_tickets = 0  # connections last, none is resumed
        return context

    def _context(self, protocol: int) -> ssl.SSLContext:
        import ssl

        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        _, certificate, key = self.paths
        try:
            context.load_verify_locations(cadata=self.ca.decode())
            context.load_cert_chain(certificate, key)
        except (ssl.SSLError, OSError, ValueError) as error:
            files = ", ".join(self.paths)
            raise errors.FailedPreconditionError.of(
                f"The files {files} are not an authority, a certificate and its key: {error}"
            ) from None
        return context


def from_environment(environment: Mapping[str, str] = os.environ) -> Credentials | None:
    """The credentials of this process, or None when it has none.

    Raises:
      FailedPreconditionError: only some of the variables are set, or a file cannot be read; says which.
    """
    paths = tuple(environment.get(name, "") for name in VARIABLES)
    if not any(paths):
        return None
    missing = [name for name, path in zip(VARIABLES, paths, strict=True) if not path]
    if missing:
        raise errors.FailedPreconditionError.of(
            f"TLS takes {', '.join(VARIABLES)} together; {' and '.join(missing)} is not set."
        )
    contents = []
    for name, path in zip(VARIABLES, paths, strict=True):
        try:
            with open(path, "rb") as file:
                contents.append(file.read())
        except OSError as error:
            raise errors.FailedPreconditionError.of(f"{name}: {path}: {error.strerror}") from None
    return Credentials(contents[0], contents[1], contents[2], (paths[0], paths[1], paths[2]))


def names_of(certificate: bytes) -> tuple[str, str]:
    """(issuer, subject) of a certificate in DER, by their common names; "?" for what has none.

    For messages only: nothing is trusted for what stands there.
    """
    found = []
    for after in certificate.split(_COMMON_NAME)[1:3]:
        length = after[1] if len(after) > 1 else 0
        found.append(after[2 : 2 + length].decode("utf-8", "replace"))
    issuer, subject = (*found, "?", "?")[:2]
    return issuer, subject
