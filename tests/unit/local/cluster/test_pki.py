import datetime as dt
import stat
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from kubeslurm.local.cluster import pki
from kubeslurm.local.cluster.nodespec import nodes
from kubeslurm.local.cluster.state import ClusterSpec

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
SPEC = ClusterSpec("c", "127.64.1.2", tuple(nodes(2, [])))


def certificate(directory: Path, name: str) -> x509.Certificate:
    pair = pki.read(directory, name)
    assert pair is not None
    return pair.certificate


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_every_certificate_is_signed_by_its_authority(tmp_path: Path) -> None:
    pki.ensure(tmp_path, SPEC, NOW)
    for spec in pki.certificates(SPEC):
        certificate(tmp_path, spec.file).verify_directly_issued_by(certificate(tmp_path, spec.ca))


def test_the_apiserver_certificate_is_valid_for_the_loopback_address_and_the_service(tmp_path: Path) -> None:
    pki.ensure(tmp_path, SPEC, NOW)
    names = certificate(tmp_path, "apiserver").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"127.64.1.2", "10.96.0.1"} <= {str(ip) for ip in names.get_values_for_type(x509.IPAddress)}
    assert "kubernetes.default.svc" in names.get_values_for_type(x509.DNSName)


def test_a_kubelet_certificate_has_the_subject_that_the_node_authorizer_requires(tmp_path: Path) -> None:
    pki.ensure(tmp_path, SPEC, NOW)
    subject = certificate(tmp_path, "kubelet-node-1").subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "system:node:node-1"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:nodes"


def test_a_client_certificate_is_not_valid_for_servers(tmp_path: Path) -> None:
    pki.ensure(tmp_path, SPEC, NOW)
    usage = certificate(tmp_path, "admin").extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [use._name for use in usage] == ["clientAuth"]


def test_authorities_and_the_service_account_key_are_kept(tmp_path: Path) -> None:
    pki.ensure(tmp_path, SPEC, NOW)
    before = contents(tmp_path)
    pki.ensure(tmp_path, ClusterSpec("c", "127.64.9.9", SPEC.nodes), NOW + dt.timedelta(days=340))
    kept = {name for name, data in contents(tmp_path).items() if before[name] == data}
    authorities = {f"{name}.{part}" for name in pki.AUTHORITIES for part in ("crt", "key")}
    assert kept == authorities | {"service-accounts.key", "service-accounts.pub"}


def test_an_authority_that_would_expire_before_its_certificates_is_renewed(tmp_path: Path) -> None:
    pki.ensure(tmp_path, SPEC, NOW)
    before = contents(tmp_path)
    pki.ensure(tmp_path, SPEC, NOW + pki.CA_LIFETIME - pki.LIFETIME)
    assert contents(tmp_path)["ca.crt"] != before["ca.crt"]


def test_a_lost_authority_is_renewed_with_all_its_certificates(tmp_path: Path) -> None:
    pki.ensure(tmp_path, SPEC, NOW)
    (tmp_path / "ca.crt").unlink()
    pki.ensure(tmp_path, SPEC, NOW)
    certificate(tmp_path, "kubelet-node-2").verify_directly_issued_by(certificate(tmp_path, "ca"))


def test_keys_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    pki.ensure(tmp_path, SPEC, NOW)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("*.key")} == {0o600}
