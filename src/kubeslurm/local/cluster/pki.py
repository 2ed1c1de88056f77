"""The cluster's own certificate authorities, and a certificate for each part that speaks to another.

Authorities are kept for the life of the cluster; what they sign is cheap and made anew at every start.
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
from kubeslurm.local.cluster.state import ClusterSpec, replace

LIFETIME = dt.timedelta(days=365)
CA_LIFETIME = dt.timedelta(days=3650)
AUTHORITIES = ("ca", "etcd-ca", "front-proxy-ca")


class Wish(msgspec.Struct, frozen=True):
    """One certificate: who it names, who signs it, and the addresses it is good for (none: clients only)."""

    file: str
    ca: str
    name: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class Pair(msgspec.Struct, frozen=True):
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def wishes(spec: ClusterSpec) -> list[Wish]:
    """Every certificate of a cluster."""
    local = ("localhost", "127.0.0.1")
    service = [f"kubernetes{suffix}" for suffix in ("", ".default", ".default.svc", f".default.svc.{network.DOMAIN}")]
    api_hosts = (*service, *local, network.API_SERVICE, network.FABRIC, spec.address)
    shared = [
        Wish("apiserver", "ca", "kube-apiserver", hosts=api_hosts),
        Wish("registry", "ca", "registry", hosts=(*local, network.FABRIC, spec.address)),
        Wish("apiserver-kubelet", "ca", "kube-apiserver-kubelet-client"),
        Wish("apiserver-etcd", "etcd-ca", "kube-apiserver-etcd-client"),
        Wish("etcd", "etcd-ca", "etcd", hosts=local),
        Wish("front-proxy", "front-proxy-ca", "front-proxy-client"),
        Wish("admin", "ca", "kubernetes-admin", ("system:masters",)),
        Wish("keeper", "ca", "kubeslurm:keeper", ("system:masters",)),
        Wish("controller-manager", "ca", "system:kube-controller-manager"),
        Wish("scheduler", "ca", "system:kube-scheduler"),
        Wish("proxy", "ca", "system:kube-proxy"),
        Wish("coredns", "ca", "system:coredns"),
    ]
    for node in spec.nodes:
        who, hosts = f"system:node:{node.name}", (node.name, network.node_address(node.index))
        shared.append(Wish(f"kubelet-{node.name}", "ca", who, ("system:nodes",)))
        shared.append(Wish(f"kubelet-{node.name}-serving", "ca", who, ("system:nodes",), hosts))
    return shared


def ensure(directory: Path, spec: ClusterSpec, now: dt.datetime) -> None:
    """Make authorities that are missing or end soon, and everything that they sign."""
    authorities = {name: _authority(directory, name, now) for name in AUTHORITIES}
    for wish in wishes(spec):
        _write(directory, wish.file, _sign(wish, authorities[wish.ca], now))
    if not (directory / "service-accounts.key").exists():
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
        replace(directory / "service-accounts.pub", public)
        replace(directory / "service-accounts.key", _pem(key))


def read(directory: Path, file: str) -> Pair | None:
    """A pair from disk, None when it is not there or unreadable."""
    try:
        certificate = x509.load_pem_x509_certificate((directory / f"{file}.crt").read_bytes())
        key = pem.load_pem_private_key((directory / f"{file}.key").read_bytes(), password=None)
    except (FileNotFoundError, ValueError):
        return None
    return Pair(certificate, key) if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _authority(directory: Path, name: str, now: dt.datetime) -> Pair:
    found = read(directory, name)
    if found and found.certificate.not_valid_after_utc - LIFETIME > now:
        return found
    made = _sign(Wish(name, name, f"kubeslurm-local-{name}"), None, now)
    _write(directory, name, made)
    return made


def _sign(wish: Wish, authority: Pair | None, now: dt.datetime) -> Pair:
    """A certificate by an authority; without one it is that of a new authority, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in wish.groups]
    subject = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, wish.name)])
    issuer, signer = (authority.certificate.subject, authority.key) if authority else (subject, key)
    ca = authority is None
    # Signing, and for an authority also certificates and revocations; none of the other seven uses.
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
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if wish.hosts else [])]
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    if wish.hosts:
        names = x509.SubjectAlternativeName([_general_name(host) for host in wish.hosts])
        builder = builder.add_extension(names, critical=False)
    return Pair(builder.sign(signer, hashes.SHA256()), key)


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(directory: Path, file: str, pair: Pair) -> None:
    replace(directory / f"{file}.key", _pem(pair.key))
    replace(directory / f"{file}.crt", pair.certificate.public_bytes(pem.Encoding.PEM))


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
