"""What a run's certificates say, who may read them, and what of them is left."""

from __future__ import annotations

import ipaddress
import os
import stat
import sys
from datetime import datetime, timedelta, timezone

import pytest

pytest.importorskip("cryptography")

from cryptography import x509  # noqa: E402
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID  # noqa: E402

from dtfctl.errors import CertificatesMissing  # noqa: E402
from dtfctl.storage.certificates import CLIENT, Certificates  # noqa: E402
from dtfctl.values.plan import TLS_VARIABLES  # noqa: E402
from tests.dtfctl.fakes import plan_of  # noqa: E402

CLUSTER = """
name: trial
security: tls
program: train
hosts:
  a: {ssh: none, address: node-a.example, bind: 0.0.0.0}
  b: {ssh: b, address: 10.0.0.2}
  c: {ssh: c, address: 10.0.0.3}
jobs:
  ps: {hosts: [a], bind: 10.9.9.9}
  worker: {replicas: 2, hosts: [a, b], spare_hosts: [c]}
"""


@pytest.fixture
def plan():
    return plan_of(CLUSTER)


@pytest.fixture
def certificates(tmp_path):
    found = Certificates(tmp_path / "tls")
    found.begin("trial", 3)
    return found


def parsed(files):
    ca, certificate, key = (files[name] for name in TLS_VARIABLES)
    assert "PRIVATE KEY" in key
    return x509.load_pem_x509_certificate(ca.encode()), x509.load_pem_x509_certificate(certificate.encode())


def name_of(name):
    return name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value


def hosts_of(certificate):
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name) for kind in (x509.DNSName, x509.IPAddress) for name in names.get_values_for_type(kind)}


def test_a_task_is_named_and_its_cluster_and_run_are(certificates, plan):
    ca, certificate = parsed(certificates.of_task(plan.task("worker:1"), plan))
    assert name_of(certificate.subject) == "worker:1"
    assert name_of(certificate.issuer) == name_of(ca.subject) == "trial, run 3"
    certificate.verify_directly_issued_by(ca)


def test_it_is_good_for_its_addresses_those_of_spares_and_its_own_machine(certificates, plan):
    here = {"localhost", "127.0.0.1", "::1"}
    _, worker = parsed(certificates.of_task(plan.task("worker:0"), plan))
    assert hosts_of(worker) == here | {"node-a.example", "10.0.0.3"}
    _, ps = parsed(certificates.of_task(plan.task("ps:0"), plan))
    assert hosts_of(ps) == here | {"node-a.example", "10.9.9.9"}


def test_it_is_for_servers_and_clients_and_signs_nothing(certificates, plan):
    ca, certificate = parsed(certificates.of_task(plan.task("ps:0"), plan))
    extensions = certificate.extensions
    purposes = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(purposes) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    limits = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    assert limits.critical and limits.value.ca and limits.value.path_length == 0


def test_it_outlives_any_run_and_forgives_clocks_that_differ(certificates, plan):
    _, certificate = parsed(certificates.of_task(plan.task("ps:0"), plan))
    now = datetime.now(timezone.utc)
    assert certificate.not_valid_before_utc < now - timedelta(hours=12)
    assert certificate.not_valid_after_utc > now + timedelta(days=365)


def test_every_task_has_a_key_and_a_serial_number_of_its_own(certificates, plan):
    files = [certificates.of_task(task, plan) for task in plan.tasks()]
    assert len({each["DTF_TLS_KEY"] for each in files}) == 3
    assert len({parsed(each)[1].serial_number for each in files}) == 3
    assert certificates.of_task(plan.task("ps:0"), plan) == files[0]


def test_a_task_that_has_moved_gets_a_certificate_for_its_new_place(certificates, plan):
    from dtfctl.values.plan import placed

    before = certificates.of_task(plan.task("ps:0"), plan)
    moved = placed(plan, {}, {"ps:0": "b"})
    after = certificates.of_task(moved.task("ps:0"), moved)
    assert before != after
    assert "10.0.0.2" in hosts_of(parsed(after)[1])


def test_the_next_supervisor_of_the_run_signs_for_the_same_authority(certificates, plan, tmp_path):
    ca, _ = parsed(certificates.of_task(plan.task("ps:0"), plan))
    again, certificate = parsed(Certificates(tmp_path / "tls").of_task(plan.task("ps:0"), plan))
    assert again == ca
    certificate.verify_directly_issued_by(ca)


def test_another_run_has_another_authority(certificates, plan, tmp_path):
    other = Certificates(tmp_path / "other")
    other.begin("trial", 4)
    ca, _ = parsed(other.of_task(plan.task("ps:0"), plan))
    _, certificate = parsed(certificates.of_task(plan.task("ps:0"), plan))
    with pytest.raises(ValueError):
        certificate.verify_directly_issued_by(ca)


def test_files_are_for_the_user_alone_and_go_with_the_run(certificates, tmp_path):
    folder = tmp_path / "tls"
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(path.name for path in folder.iterdir()) == ["ca.key", "ca.pem", f"{CLIENT}.key", f"{CLIENT}.pem"]
    certificates.forget()
    assert not folder.exists()


def test_an_authority_that_is_lost_leaves_a_task_without_files_that_any_server_would_take(certificates, plan, tmp_path):
    (tmp_path / "tls" / "ca.key").write_text("rubbish")
    found = Certificates(tmp_path / "tls").of_task(plan.task("ps:0"), plan)
    assert found == dict.fromkeys(TLS_VARIABLES, "")


def test_names_are_cut_to_what_a_certificate_takes(tmp_path):
    found = Certificates(tmp_path / "tls")
    found.begin("a" * 200, 12)
    ca = x509.load_pem_x509_certificate((tmp_path / "tls" / "ca.pem").read_bytes())
    assert len(name_of(ca.subject)) == 64 and name_of(ca.subject).endswith(", run 12")


def test_without_the_library_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(CertificatesMissing, match=r"security: tls needs .* cryptography .* pip install 'dtf\[tls\]'"):
        Certificates(tmp_path / "tls").begin("trial", 1)


def test_addresses_of_both_kinds_are_told_apart(certificates, plan):
    _, certificate = parsed(certificates.of_task(plan.task("worker:1"), plan))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ipaddress.ip_address("10.0.0.2") in names.get_values_for_type(x509.IPAddress)
