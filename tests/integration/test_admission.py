"""The admission server as the chart installs it, called by a real API server: rights, certificate and messages."""

import base64
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeslurm.api.crds import to_yaml
from kubeslurm.api.kinds import SECRET, VALIDATING_WEBHOOKS, kind_of
from kubeslurm.api.meta import Tree
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import AlreadyExists, Invalid
from kubeslurm.kube.transport.connection import Connection
from kubeslurm.local.cluster import network
from kubeslurm.local.cluster.cluster import Cluster
from tests.conformance.manifests import Case, cases
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]
HELM = Path(sys.executable).parent / "helm"
WHERE = "admission"
NAME = "slurm-operator-webhook"
CERTIFICATES = Key(WHERE, f"{NAME}-certificates")
INSTALLED = {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", VALIDATING_WEBHOOKS.kind}


@pytest.fixture(scope="module")
def webhook(definitions: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster with our definitions, the chart's webhook objects and a webhook process under the chart's account."""
    folder = tmp_path_factory.mktemp("webhook")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WHERE}}
    objects = [namespace, *chart(), *service()]
    file = folder / "objects.yaml"
    file.write_text("---\n".join(to_yaml(each) for each in objects), encoding="utf-8")
    definitions.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    try:
        with process(definitions, folder):
            # The API server takes up the webhook, its certificate and its rights one after the other.
            wait_for("the webhook to be called", lambda: "create it first" in refusal(definitions))
            yield definitions
    finally:
        definitions.kubectl("delete", "--ignore-not-found", VALIDATING_WEBHOOKS.plural, NAME)
        definitions.kubectl("delete", "--timeout=180s", "namespace", WHERE)


def chart() -> list[Tree]:
    """The webhook objects of the chart, without the Deployment: there are no nodes here to run it."""
    values = f"webhook.namespaces={{{WHERE}}}"
    argv = [str(HELM), "template", "slurm-operator", str(ROOT / "charts/slurm-operator"), f"--namespace={WHERE}"]
    rendered = subprocess.run([*argv, f"--set={values}"], check=True, capture_output=True, text=True, timeout=180)
    trees: list[Any] = [each for each in yaml.safe_load_all(rendered.stdout) if each]
    return [each for each in trees if each["kind"] in INSTALLED and each["metadata"]["name"].startswith(NAME)]


def service() -> list[Tree]:
    """The webhook's Service, with the address where the process listens."""
    metadata = {"name": NAME, "namespace": WHERE}
    tree = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 443}]}}
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata | {"labels": {"kubernetes.io/service-name": NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [network.BRIDGE_IP], "conditions": {"ready": True}}],
        "ports": [{"name": "", "port": 443}],
    }
    return [tree, endpoints]


@contextlib.contextmanager
def process(cluster: Cluster, folder: Path) -> Iterator[None]:
    """`kubeslurm webhook` in the cluster's network, with the rights that the chart gives and no others."""
    token = cluster.kubectl("create", "token", NAME, f"--namespace={WHERE}").strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://{network.BRIDGE_IP}:{network.API_PORT}"
    config["users"][0]["user"] = {"token": token}
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    kubeconfig.write_text(yaml.safe_dump(config))
    init = cluster.home.init()
    assert init is not None
    argv = ["nsenter", f"--target={init.pid}", "--net", "--", sys.executable, "-m", "kubeslurm.operator", "webhook"]
    flags = [f"--kubeconfig={kubeconfig}", f"--namespace={WHERE}", f"--cert-secret={CERTIFICATES.name}"]
    addresses = [f"--server-addr={network.BRIDGE_IP}:443", f"--health-addr={network.BRIDGE_IP}:18081"]
    with log.open("wb") as out, subprocess.Popen([*argv, *flags, *addresses], stderr=out) as started:
        try:
            wait_for("the certificate to be loaded", lambda: "certificate loaded" in log.read_text())
            yield
        finally:
            started.kill()


@pytest.fixture
def kube(webhook: Cluster, connection: Connection) -> Kube:
    return Kube(connection, Caches(connection), manager="test")


@pytest.mark.parametrize("case", cases("invalid-webhook"), ids=lambda case: case.name)
async def test_an_object_that_only_admission_can_refuse_is_refused_by_the_api_server(kube: Kube, case: Case) -> None:
    *existing, manifest = case.objects(WHERE)
    for each in existing:
        with contextlib.suppress(AlreadyExists):
            await kube.create(each)
    with pytest.raises(Invalid) as refusal:
        await kube.create(manifest)
    assert case.refusal in refusal.value.message
    assert await kube.get(kind_of(manifest), Key(WHERE, manifest["metadata"]["name"])) is None


def test_a_deleted_certificate_is_issued_again_trusted_and_used(webhook: Cluster) -> None:
    before = authorities(webhook)
    assert before.startswith(b"-----BEGIN CERTIFICATE")
    webhook.kubectl("delete", "secret", CERTIFICATES.name, f"--namespace={WHERE}")
    wait_for(
        "a new authority that is trusted",
        lambda: bool(held := authorities(webhook)) and held != before and trusted(webhook) == {held},
    )
    assert before.split(b"-----END")[0] in authorities(webhook), (
        "the certificates of other replicas are not trusted any more"
    )
    wait_for("the webhook to be called again", lambda: "create it first" in refusal(webhook))


@pytest.fixture
def unanswered(webhook: Cluster) -> Iterator[Cluster]:
    """The API server calls the webhook where nobody listens; a connection that is open already would not be missed."""
    call(webhook, port=444)
    try:
        wait_for("the webhook to be away", lambda: "failed calling webhook" in refusal(webhook))
        yield webhook
    finally:
        call(webhook, port=443)
        wait_for("the webhook to be called again", lambda: "create it first" in refusal(webhook))


def call(cluster: Cluster, *, port: int) -> None:
    """Has the webhook called on this port."""
    (tree,) = (each for each in chart() if each["kind"] == VALIDATING_WEBHOOKS.kind)
    changes = [
        {"op": "replace", "path": f"/webhooks/{at}/clientConfig/service/port", "value": port}
        for at, _ in enumerate(tree["webhooks"])
    ]
    cluster.kubectl("patch", VALIDATING_WEBHOOKS.plural, NAME, "--type=json", "--patch", json.dumps(changes))


@pytest.fixture
def token(webhook: Cluster) -> Iterator[str]:
    """An object that stays until its finalizer is taken off."""
    name, here = "tokens.slinky.slurm.net/held", f"--namespace={WHERE}"
    metadata = {"name": "held", "namespace": WHERE, "finalizers": ["example.org/hold"]}
    spec = {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}, "username": "me"}
    tree = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Token", "metadata": metadata, "spec": spec}
    webhook.kubectl("create", "--filename=-", stdin=json.dumps(tree))
    yield name
    if webhook.kubectl("get", name, here, "--ignore-not-found"):
        webhook.kubectl("patch", name, here, "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')


def test_while_no_webhook_answers_an_object_can_be_labelled_and_deleted(token: str, unanswered: Cluster) -> None:
    here = f"--namespace={WHERE}"
    change = unanswered.kubectl_command("patch", token, here, "--type=merge", "--patch")
    refused = subprocess.run(
        [*change, '{"spec": {"username": "other"}}'], capture_output=True, text=True, check=False, timeout=180
    )
    assert "failed calling webhook" in refused.stderr
    unanswered.kubectl("label", token, here, "team=blue")
    unanswered.kubectl("delete", token, here, "--wait=false")
    unanswered.kubectl("patch", token, here, "--type=merge", "--patch", '{"metadata": {"finalizers": null}}')
    assert not unanswered.kubectl("get", token, here, "--ignore-not-found")


def refusal(cluster: Cluster) -> str:
    """The API server's message about an object that refers to a missing one."""
    manifest = yaml.safe_dump(
        next(case for case in cases("invalid-webhook") if "missing" in case.name).objects(WHERE)[0]
    )
    command = cluster.kubectl_command("create", "--dry-run=server", "--filename=-")
    answer = subprocess.run(command, input=manifest, capture_output=True, text=True, check=False, timeout=180)
    return answer.stderr


def authorities(cluster: Cluster) -> bytes:
    output = "--output=jsonpath={.data['ca\\.crt']}"
    where = f"--namespace={WHERE}"
    return base64.b64decode(
        cluster.kubectl("get", SECRET.plural, CERTIFICATES.name, where, output, "--ignore-not-found")
    )


def trusted(cluster: Cluster) -> set[bytes]:
    output = "--output=jsonpath={.webhooks[*].clientConfig.caBundle}"
    return {base64.b64decode(each) for each in cluster.kubectl("get", VALIDATING_WEBHOOKS.plural, NAME, output).split()}
