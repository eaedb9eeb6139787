"""The certificates of a run whose cluster file says `security: tls`: an authority of its own, and a key and certificate
for each task, and for the user's own clients.

    runs/<number>/tls/  ca.pem  ca.key  <task>.pem  <task>.key  client.pem  client.key      (0600, the folder 0700)

Nothing is shared between runs: with each `up` that starts one everything is made anew, and what an earlier run handed
out is a stranger's. The only module that needs the package `cryptography`, and only when certificates are asked for.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dtfctl.errors import DtfctlError
from dtfctl.plan import ClusterPlan, Task

CA_VARIABLE = "DTF_TLS_CA"
CERTIFICATE_VARIABLE = "DTF_TLS_CERT"
KEY_VARIABLE = "DTF_TLS_KEY"
VARIABLES = (CA_VARIABLE, CERTIFICATE_VARIABLE, KEY_VARIABLE)
"""Where a task finds its files; what dtf's servers and sessions look at."""

CLIENT = "client"
VALID_FOR = datetime.timedelta(days=3 * 365)
"""A certificate that ends in the middle of a run would end the run."""

CLOCKS_APART = datetime.timedelta(days=1)
_NAME_CHARACTERS_MAX = 64
_EVERYWHERE = ("0.0.0.0", "::", "")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class Certificates:
    """Those of one run, in its folder `tls`. What is asked for is made when it is not there yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority: tuple[Any, Any] | None = None

    @property
    def exists(self) -> bool:
        return self.ca.exists()

    @property
    def ca(self) -> Path:
        return self._folder / "ca.pem"

    def begin(self, plan: ClusterPlan, run: int) -> None:
        """Makes the authority, and a certificate for the user. Raises DtfctlError without `cryptography`."""
        _library()
        self._folder.mkdir(mode=0o700, parents=True)
        number = f", run {run}"
        name = plan.name[: _NAME_CHARACTERS_MAX - len(number)] + number
        key, certificate = make_authority(name)
        self._authority = key, certificate
        _write(self._folder / "ca.key", _pem_of_key(key))
        _write(self.ca, _pem(certificate))
        self._issue(CLIENT, ())

    def of_client(self) -> dict[str, str]:
        """The variables with which a shell of the user's reaches the cluster."""
        return self._paths(CLIENT)

    def of_task(self, task: Task, plan: ClusterPlan) -> dict[str, str]:
        """Variable -> path on this machine, of the files that a task is given."""
        name = task.name.replace(":", "-")
        if not (self._folder / f"{name}.pem").exists():
            places = [task.advertised_host, task.bind_host, task.host.address]
            places += [plan.host(spare).address for spare in task.job.spares]
            self._issue(name, places, task.name)
        return self._paths(name)

    def _paths(self, name: str) -> dict[str, str]:
        paths = (self.ca, self._folder / f"{name}.pem", self._folder / f"{name}.key")
        return dict(zip(VARIABLES, map(str, paths), strict=True))

    def _issue(self, file: str, hosts: Iterable[str], name: str = "") -> None:
        if self._authority is None:
            self._authority = _load(self._folder)
        key, certificate = issue(self._authority, name or file, hosts)
        _write(self._folder / f"{file}.key", _pem_of_key(key))
        _write(self._folder / f"{file}.pem", _pem(certificate))


def make_authority(name: str) -> tuple[Any, Any]:
    """(key, certificate) of an authority that may sign certificates of tasks, and nothing that signs others."""
    lib = _library()
    key = lib.ec.generate_private_key(lib.ec.SECP256R1())
    subject = _name(name)
    usage = _usage(key_cert_sign=True, crl_sign=True)
    builder = _builder(subject, subject, key).add_extension(lib.x509.BasicConstraints(True, 0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    identifier = lib.x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return key, builder.add_extension(identifier, critical=False).sign(key, lib.hashes.SHA256())


def issue(authority: tuple[Any, Any], name: str, hosts: Iterable[str]) -> tuple[Any, Any]:
    """(key, certificate) of a task that may be a server at `hosts` and on its own machine, and a client."""
    lib = _library()
    ca_key, ca = authority
    key = lib.ec.generate_private_key(lib.ec.SECP256R1())
    purposes = [lib.oid.ExtendedKeyUsageOID.SERVER_AUTH, lib.oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    names = [_general_name(host) for host in dict.fromkeys((*hosts, *_THIS_MACHINE)) if host not in _EVERYWHERE]
    signer = lib.x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    identifier = lib.x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = _builder(_name(name), ca.subject, key).add_extension(lib.x509.BasicConstraints(False, None), True)
    builder = builder.add_extension(_usage(digital_signature=True), critical=True)
    for extension in (lib.x509.ExtendedKeyUsage(purposes), lib.x509.SubjectAlternativeName(names), signer, identifier):
        builder = builder.add_extension(extension, critical=False)
    return key, builder.sign(ca_key, lib.hashes.SHA256())


class _Library:
    """The parts of `cryptography` that are used here."""

    def __init__(self) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509 import oid

        self.x509: Any = x509
        self.hashes: Any = hashes
        self.serialization: Any = serialization
        self.ec: Any = ec
        self.oid: Any = oid


def _library() -> _Library:
    try:
        return _Library()
    except ImportError as error:
        raise DtfctlError(
            f"security: tls takes the Python package cryptography ({error}); install it: pip install 'dtf[tls]'"
        ) from None


def _builder(subject: Any, issuer: Any, key: Any) -> Any:
    lib = _library()
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        lib.x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(lib.x509.random_serial_number())
        .not_valid_before(now - CLOCKS_APART)
        .not_valid_after(now + VALID_FOR)
    )


def _usage(**granted: bool) -> Any:
    kinds = (
        "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign "
        "crl_sign encipher_only decipher_only"
    ).split()
    return _library().x509.KeyUsage(**{kind: granted.get(kind, False) for kind in kinds})


def _name(text: str) -> Any:
    lib = _library()
    return lib.x509.Name([lib.x509.NameAttribute(lib.oid.NameOID.COMMON_NAME, text[:_NAME_CHARACTERS_MAX])])


def _general_name(host: str) -> Any:
    lib = _library()
    bare = host.strip("[]")
    try:
        return lib.x509.IPAddress(ipaddress.ip_address(bare))
    except ValueError:
        return lib.x509.DNSName(bare.encode("idna").decode() if not bare.isascii() else bare)


def _pem(certificate: Any) -> bytes:
    return certificate.public_bytes(_library().serialization.Encoding.PEM)


def _pem_of_key(key: Any) -> bytes:
    kinds = _library().serialization
    return key.private_bytes(kinds.Encoding.PEM, kinds.PrivateFormat.PKCS8, kinds.NoEncryption())


def _load(folder: Path) -> tuple[Any, Any]:
    lib = _library()
    key = lib.serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    return key, lib.x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())


def _write(path: Path, content: bytes) -> None:
    """Complete or not there at all, and never readable by others."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(aside, path)
