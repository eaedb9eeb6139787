"""The certificates of a run whose cluster file says `security: tls`: an authority of its own, and a key and certificate
for each task, and for the user's own clients.

    runs/<number>/tls/           ca.pem  ca.key  client.pem  client.key      on the supervisor's machine
    runs/<number>/files/<task>/  DTF_TLS_CA  DTF_TLS_CERT  DTF_TLS_KEY       on the task's, written by its keeper

All are 0600 in folders that are 0700, and go with the run. Nothing is shared between runs: each makes everything anew,
and to it what an earlier one handed out is a stranger's. The only module that needs the package `cryptography`, and
only when certificates are asked for.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtfctl.errors import CertificatesMissing
from dtfctl.values.plan import TLS_VARIABLES, ClusterPlan, Task

if TYPE_CHECKING:
    import ssl

CA_VARIABLE, CERTIFICATE_VARIABLE, KEY_VARIABLE = TLS_VARIABLES

CLIENT = "client"
VALID_FOR = datetime.timedelta(days=3 * 365)
"""A certificate that ends in the middle of a run would end the run."""

CLOCKS_APART = datetime.timedelta(days=1)
_NAME_CHARACTERS_MAX = 64
_EVERYWHERE = ("0.0.0.0", "::", "")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class Certificates:
    """Those of one run. The authority and the client's files lie in `folder`; a task's key is made when the task is
    started, and lies with the task alone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority: tuple[Any, Any] | None = None
        self._given: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {}

    def begin(self, cluster: str, run: int) -> None:
        """Makes the authority, and the user's own certificate. Raises CertificatesMissing without `cryptography`."""
        _library()
        self._folder.mkdir(mode=0o700, parents=True)
        number = f", run {run}"
        self._authority = make_authority(cluster[: _NAME_CHARACTERS_MAX - len(number)] + number)
        key, certificate = issue(self._authority, CLIENT, ())
        paths = {name: Path(path) for name, path in self.of_client().items()}
        _write(paths[KEY_VARIABLE], pem_of_key(key))
        _write(paths[CERTIFICATE_VARIABLE], pem(certificate))
        _write(self._folder / "ca.key", pem_of_key(self._authority[0]))
        _write(paths[CA_VARIABLE], pem(self._authority[1]))

    def of_client(self) -> dict[str, str]:
        """Variable -> path: with these a shell of the user's reaches the cluster."""
        names = ("ca.pem", f"{CLIENT}.pem", f"{CLIENT}.key")
        return {variable: str(self._folder / name) for variable, name in zip(TLS_VARIABLES, names, strict=True)}

    def client_context(self) -> ssl.SSLContext:
        """For connections of dtfctl's own to the tasks."""
        import ssl

        paths = self.of_client()
        context = ssl.create_default_context(cafile=paths[CA_VARIABLE])
        context.load_cert_chain(paths[CERTIFICATE_VARIABLE], paths[KEY_VARIABLE])
        context.set_alpn_protocols(["h2"])
        return context

    def of_task(self, task: Task, plan: ClusterPlan) -> dict[str, str]:
        """Variable -> text, of the files that a task is given; good for its host and those to which it may move."""
        spares = [plan.host(spare).address for spare in task.job.spares]
        hosts = (task.advertised_host, task.bind_host, task.host.address, *spares)
        former, texts = self._given.get(task.name, ((), {}))
        if former != hosts:
            try:
                self._authority = self._authority or _load(self._folder)
            except (OSError, ValueError, CertificatesMissing):
                # Damaged on disk. The task must not come up without TLS: its server refuses these, and says why.
                return dict.fromkeys(TLS_VARIABLES, "")
            key, certificate = issue(self._authority, task.name, hosts)
            contents = (pem(self._authority[1]), pem(certificate), pem_of_key(key))
            texts = {name: content.decode() for name, content in zip(TLS_VARIABLES, contents, strict=True)}
            self._given[task.name] = hosts, texts
        return texts

    def forget(self) -> None:
        """At the end of the run: nothing that they open is left."""
        self._given.clear()
        shutil.rmtree(self._folder, ignore_errors=True)


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
        raise CertificatesMissing(
            f"security: tls needs the Python package cryptography ({error}); install it: pip install 'dtf[tls]'"
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


def pem(certificate: Any) -> bytes:
    """The certificate as text."""
    text: bytes = certificate.public_bytes(_library().serialization.Encoding.PEM)
    return text


def pem_of_key(key: Any) -> bytes:
    """The private key as text, not encrypted."""
    kinds = _library().serialization
    text: bytes = key.private_bytes(kinds.Encoding.PEM, kinds.PrivateFormat.PKCS8, kinds.NoEncryption())
    return text


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
