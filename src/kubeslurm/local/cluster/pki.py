"""The cluster's certificate authorities, and certificates for its components.

Authorities are kept as long as the cluster exists; the certificates that they sign are renewed at every start.
"""

import datetime as dt
import ipaddress
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubeslurm.local.cluster import network
from kubeslurm.local.cluster.state import ClusterSpec
from kubeslurm.local.host import files

LIFETIME = dt.timedelta(days=365)
CA_LIFETIME = dt.timedelta(days=3650)
AUTHORITIES = ("ca", "etcd-ca", "front-proxy-ca")


class CertificateSpec(msgspec.Struct, frozen=True):
    """One certificate: its subject, its authority, and the host names it is valid for (none for clients)."""

    file: str
    ca: str
    name: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def certificates(spec: ClusterSpec) -> list[CertificateSpec]:
    """Every certificate of a cluster."""
    local = ("localhost", "127.0.0.1")
    service = [f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc", f".default.svc.{network.DOMAIN}")]
    api_hosts = (*service, *local, network.API_SERVICE, network.BRIDGE_IP, spec.address)
    specs = [
        CertificateSpec("apiserver", "ca", "kube-apiserver", hosts=api_hosts),
        CertificateSpec("registry", "ca", "registry", hosts=(*local, network.BRIDGE_IP, spec.address)),
        CertificateSpec("apiserver-kubelet", "ca", "kube-apiserver-kubelet-client"),
        CertificateSpec("apiserver-etcd", "etcd-ca", "kube-apiserver-etcd-client"),
        CertificateSpec("etcd", "etcd-ca", "etcd", hosts=local),
        CertificateSpec("front-proxy", "front-proxy-ca", "front-proxy-client"),
        CertificateSpec("admin", "ca", "kubernetes-admin", ("system:masters",)),
        CertificateSpec("local-controller", "ca", "kubeslurm:local-controller", ("system:masters",)),
        CertificateSpec("controller-manager", "ca", "system:kube-controller-manager"),
        CertificateSpec("scheduler", "ca", "system:kube-scheduler"),
        CertificateSpec("proxy", "ca", "system:kube-proxy"),
        CertificateSpec("coredns", "ca", "system:coredns"),
    ]
    for node in spec.nodes:
        user, hosts = f"system:node:{node.name}", (node.name, network.node_address(node.index))
        specs.append(CertificateSpec(f"kubelet-{node.name}", "ca", user, ("system:nodes",)))
        specs.append(CertificateSpec(f"kubelet-{node.name}-serving", "ca", user, ("system:nodes",), hosts))
    return specs


def ensure(directory: Path, spec: ClusterSpec, now: dt.datetime) -> None:
    """Make authorities that are missing or expire soon, and all certificates."""
    authorities = {name: _authority(directory, name, now) for name in AUTHORITIES}
    for certificate in certificates(spec):
        _write(directory, certificate.file, _sign(certificate, authorities[certificate.ca], now))
    if not (directory / "service-accounts.key").exists():
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
        files.write(directory / "service-accounts.pub", public)
        files.write(directory / "service-accounts.key", _pem(key))


def read(directory: Path, file: str) -> KeyPair | None:
    """Read a key pair; None if it is missing or invalid."""
    try:
        certificate = x509.load_pem_x509_certificate((directory / f"{file}.crt").read_bytes())
        key = pem.load_pem_private_key((directory / f"{file}.key").read_bytes(), password=None)
    except (FileNotFoundError, ValueError):
        return None
    return KeyPair(certificate, key) if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _authority(directory: Path, name: str, now: dt.datetime) -> KeyPair:
    found = read(directory, name)
    if found and found.certificate.not_valid_after_utc - LIFETIME > now:
        return found
    pair = _sign(CertificateSpec(name, name, f"kubeslurm-local-{name}"), None, now)
    _write(directory, name, pair)
    return pair


def _sign(spec: CertificateSpec, authority: KeyPair | None, now: dt.datetime) -> KeyPair:
    """Sign a new certificate; without an authority, it is the self-signed certificate of a new authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in spec.groups]
    subject = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, spec.name)])
    issuer, signer = (authority.certificate.subject, authority.key) if authority else (subject, key)
    ca = authority is None
    # digital_signature, and for an authority also key_cert_sign and crl_sign.
    usage = x509.KeyUsage(True, False, False, False, False, ca, ca, False, False)
    builder = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + (CA_LIFETIME if ca else LIFETIME))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if not ca:
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if spec.hosts else [])]
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    if spec.hosts:
        names = x509.SubjectAlternativeName([_general_name(host) for host in spec.hosts])
        builder = builder.add_extension(names, critical=False)
    return KeyPair(builder.sign(signer, hashes.SHA256()), key)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(directory: Path, file: str, pair: KeyPair) -> None:
    files.write(directory / f"{file}.key", _pem(pair.key))
    files.write(directory / f"{file}.crt", pair.certificate.public_bytes(pem.Encoding.PEM))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
