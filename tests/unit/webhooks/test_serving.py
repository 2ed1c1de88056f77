"""The serving certificate: loaded into the TLS context, rotated in its Secret, trusted by the API server."""

import base64
import copy
import datetime as dt
import ssl
from pathlib import Path
from typing import Any

import pytest

from kubeslurm.api.kinds import SECRET, VALIDATING_WEBHOOKS, Kind
from kubeslurm.api.meta import Tree
from kubeslurm.engine.key import Key
from kubeslurm.kube.errors import AlreadyExists, Conflict
from kubeslurm.webhooks.certificates import LIFETIME, Bundle, issue, service_names
from kubeslurm.webhooks.rotation import CertificateRotation, RotationSettings, ca_bundle_patch
from kubeslurm.webhooks.serving import CertificateFiles, ServingCertificate

NOW = dt.datetime(2026, 11, 15, tzinfo=dt.UTC)
NAMES = service_names("slurm-operator-webhook", "slinky")
SETTINGS = RotationSettings(Key("slinky", "certificates"), NAMES, "slurm-operator-webhook")


class Cluster:
    """The Secret and the webhook configuration, with the conflicts that a real server would report."""

    def __init__(self, *, secret: Tree | None = None, webhooks: int = 2) -> None:
        self.secret = secret
        self.created_by_other: Tree | None = None
        entries = [{"name": f"w{at}", "clientConfig": {"service": {"name": "x"}}} for at in range(webhooks)]
        self.configuration: Tree = {"webhooks": entries}
        self.writes: list[str] = []

    async def get_tree(self, kind: Kind[Any], key: Key) -> Tree | None:
        if kind is SECRET:
            return copy.deepcopy(self.secret)
        return copy.deepcopy(self.configuration) if kind is VALIDATING_WEBHOOKS else None

    async def create(self, tree: Tree) -> None:
        self.writes.append("create")
        if self.created_by_other:
            self.secret = self.created_by_other
            raise AlreadyExists(409, "AlreadyExists", "already there")
        self.secret = {**tree, "metadata": {**tree["metadata"], "resourceVersion": "1"}}

    async def patch(self, kind: Kind[Any], key: Key, patch: Any, *, type: Any = "merge") -> None:  # noqa: A002
        self.writes.append(f"patch {kind.kind}")
        if kind is SECRET:
            assert self.secret
            if patch["metadata"]["resourceVersion"] != self.secret["metadata"]["resourceVersion"]:
                raise Conflict(409, "Conflict", "changed meanwhile")
            self.secret = {**self.secret, "data": patch["data"], "metadata": {"resourceVersion": "2"}}
            return
        for change in patch:
            if change["op"] == "add":
                at = int(change["path"].split("/")[2])
                self.configuration["webhooks"][at]["clientConfig"]["caBundle"] = change["value"]

    def trusted(self) -> set[bytes]:
        return {base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in self.configuration["webhooks"]}


def held(cluster: Cluster) -> Bundle:
    assert cluster.secret
    data = {name: base64.b64decode(text) for name, text in cluster.secret["data"].items()}
    return Bundle(data["ca.crt"], data["tls.crt"], data["tls.key"])


def rotation(cluster: Cluster, now: dt.datetime = NOW) -> CertificateRotation:
    return CertificateRotation(cluster, SETTINGS, ServingCertificate(), lambda: now)


async def test_the_first_replica_issues_the_certificate_and_writes_the_ca_bundle() -> None:
    cluster = Cluster()
    await rotation(cluster).refresh()
    assert cluster.trusted() == {held(cluster).ca}
    assert cluster.writes == ["create", "patch ValidatingWebhookConfiguration"]


async def test_a_second_refresh_writes_nothing() -> None:
    cluster = Cluster()
    first = rotation(cluster)
    await first.refresh()
    cluster.writes.clear()
    await first.refresh()
    await rotation(cluster).refresh()
    assert cluster.writes == []


async def test_an_empty_secret_of_the_chart_is_filled() -> None:
    cluster = Cluster(secret={"metadata": {"resourceVersion": "7"}})
    await rotation(cluster).refresh()
    assert cluster.trusted() == {held(cluster).ca}


async def test_a_slower_replica_uses_the_certificate_of_the_faster_one() -> None:
    faster = Cluster()
    await rotation(faster).refresh()
    slower = Cluster()
    slower.created_by_other = faster.secret
    await rotation(slower).refresh()
    assert slower.trusted() == {held(faster).ca}


async def test_after_a_renewal_the_old_certificate_is_still_trusted() -> None:
    cluster = Cluster()
    await rotation(cluster).refresh()
    before = held(cluster)
    await rotation(cluster, NOW + LIFETIME * 0.7).refresh()
    after = held(cluster)
    assert after.cert != before.cert
    assert before.ca in after.ca
    assert cluster.trusted() == {after.ca}


async def test_a_deleted_secret_is_created_again_and_the_certificates_of_other_replicas_stay_trusted() -> None:
    cluster = Cluster()
    one = rotation(cluster)
    await one.refresh()
    before, cluster.secret = held(cluster), None
    await one.refresh()
    after = held(cluster)
    assert after.cert != before.cert
    assert before.ca in after.ca
    assert cluster.trusted() == {after.ca}


async def test_a_removed_ca_bundle_is_restored() -> None:
    cluster = Cluster()
    one = rotation(cluster)
    await one.refresh()
    del cluster.configuration["webhooks"][1]["clientConfig"]["caBundle"]
    await one.refresh()
    assert cluster.trusted() == {held(cluster).ca}


def test_only_webhooks_with_another_ca_bundle_are_patched() -> None:
    webhooks = [
        {"name": "a", "clientConfig": {"caBundle": base64.b64encode(b"ca").decode()}},
        {"name": "b", "clientConfig": {}},
    ]
    assert [change["path"] for change in ca_bundle_patch(webhooks, b"ca")] == [
        "/webhooks/1/name",
        "/webhooks/1/clientConfig/caBundle",
    ]


def write(directory: Path, bundle: Bundle) -> None:
    (directory / "tls.crt").write_bytes(bundle.cert)
    (directory / "tls.key").write_bytes(bundle.key)


def served(serving: ServingCertificate) -> bytes:
    """The certificate that a client gets in a handshake."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    pipes = [ssl.MemoryBIO() for _ in range(2)]
    ends = [client.wrap_bio(pipes[0], pipes[1]), serving.context.wrap_bio(pipes[1], pipes[0], server_side=True)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    raw = ends[0].getpeercert(binary_form=True)
    assert raw
    return ssl.DER_cert_to_PEM_cert(raw).encode()


def test_a_renewed_certificate_is_served_to_the_next_client(tmp_path: Path) -> None:
    serving = ServingCertificate()
    files = CertificateFiles(tmp_path, serving)
    first, second = issue(NAMES, NOW), issue(NAMES, NOW)
    for bundle in (first, second):
        write(tmp_path, bundle)
        files.refresh()
        assert served(serving) == bundle.cert


def test_while_only_one_of_the_files_is_replaced_the_old_certificate_is_served(tmp_path: Path) -> None:
    serving = ServingCertificate()
    files = CertificateFiles(tmp_path, serving)
    first, second = issue(NAMES, NOW), issue(NAMES, NOW)
    write(tmp_path, first)
    files.refresh()
    (tmp_path / "tls.crt").write_bytes(second.cert)
    files.refresh()
    assert served(serving) == first.cert


async def test_files_may_appear_later(tmp_path: Path) -> None:
    serving = ServingCertificate()
    files = CertificateFiles(tmp_path, serving)
    files.refresh()
    write(tmp_path, issue(NAMES, NOW))
    files.refresh()
    await serving.wait_loaded()


def test_a_certificate_with_the_wrong_key_is_refused() -> None:
    with pytest.raises(ssl.SSLError):
        ServingCertificate().load(issue(NAMES, NOW).cert, issue(NAMES, NOW).key)
