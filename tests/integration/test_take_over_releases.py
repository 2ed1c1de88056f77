"""Slinky's releases are taken over as docs/from-slinky.md says: the definitions, and with them every object, stay."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubeslurm.api.crds import crds
from kubeslurm.local.cluster.cluster import Cluster
from tests.support.documented import Reader
from tests.support.predecessor.release import CRDS_RELEASE, PLACE, RELEASE, write_charts

PAGE = "from-slinky.md"
# Nothing runs here: there are no nodes.
UNSEEN = {f"kubectl --namespace {PLACE} rollout status deployment {RELEASE} --timeout=300s": "true"}
CONTROLLER = """\
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata: {name: valuable, namespace: default}
spec:
  slurmKeyRef: {name: a, key: a}
  jwtKeyRef: {name: a, key: a}
"""
INSIDE = "The definitions are in the operator's release"
TAKING = f"--namespace {PLACE} --take-ownership"  # the definitions are there already
INSTALLED = {
    INSIDE: f"helm install {RELEASE} old/{RELEASE} {TAKING} --set crds.enabled=true",
    "The definitions are in a chart of their own": f"""\
helm install {CRDS_RELEASE} old/{CRDS_RELEASE} {TAKING}
helm install {RELEASE} old/{RELEASE} --namespace {PLACE}""",
    "Everything was installed by kubectl": f"""\
helm template {CRDS_RELEASE} old/{CRDS_RELEASE} | kubectl apply --server-side --force-conflicts --filename=-
helm template {RELEASE} old/{RELEASE} --namespace {PLACE} | kubectl apply --filename=-""",
}


@pytest.fixture
def reader(definitions: Cluster, tmp_path: Path) -> Iterator[Reader]:
    """Somebody with a valuable object, on a cluster where nobody holds the definitions."""
    made = Reader(definitions, tmp_path)
    write_charts(tmp_path / "old", "example.org/operator")
    (tmp_path / "operator-values.yaml").write_text(yaml.safe_dump({"operator": {"logLevel": "debug"}}))
    forget(definitions)
    definitions.kubectl("create", "namespace", PLACE)
    (tmp_path / "controller.yaml").write_text(CONTROLLER)
    definitions.kubectl("create", f"--filename={tmp_path}/controller.yaml")
    try:
        yield made
    finally:
        for name in (RELEASE, CRDS_RELEASE):
            made.type(f"helm uninstall {name} --namespace {PLACE} --no-hooks --ignore-not-found")
        definitions.kubectl("delete", "controllers.slinky.slurm.net", "--all", "--namespace=default")
        definitions.kubectl("delete", "namespace", PLACE, "--wait=true", "--timeout=120s")


def forget(cluster: Cluster) -> None:
    """Takes every mark of Helm off the definitions."""
    helm = ("meta.helm.sh/release-name-", "meta.helm.sh/release-namespace-", "helm.sh/resource-policy-")
    cluster.kubectl("annotate", *(f"crd/{name}" for name in crds()), *helm)
    cluster.kubectl("label", *(f"crd/{name}" for name in crds()), "app.kubernetes.io/managed-by-")


def uids(cluster: Cluster) -> list[str]:
    """Of the definitions, and of the object."""
    path = "--output=jsonpath={.items[*].metadata.uid}"
    found = cluster.kubectl("get", "crd", path), cluster.kubectl("get", "controllers.slinky.slurm.net", "-A", path)
    return [uid for text in found for uid in text.split()]


@pytest.mark.parametrize("way", INSTALLED)
def test_definitions_and_objects_stay(reader: Reader, definitions: Cluster, way: str) -> None:
    reader.type(INSTALLED[way])
    before = uids(definitions)
    assert len(before) == len(crds()) + 1
    reader.follow(PAGE, way, UNSEEN)
    assert uids(definitions) == before

    args = definitions.kubectl("get", f"deployment/{RELEASE}", f"--namespace={PLACE}", "--output=yaml")
    assert "--log-level=debug" in args, "it runs our operator with the values of the release"
    hooks = definitions.kubectl("get", "validatingwebhookconfigurations", "--output=yaml")
    assert "cert-manager.io" not in hooks
    assert not definitions.kubectl("get", "mutatingwebhookconfigurations", "--output=name").strip()

    # From now on they also survive the end of the release.
    reader.type(f"helm uninstall {RELEASE} --namespace {PLACE} --no-hooks")
    assert uids(definitions) == before


def test_the_annotation_keeps_definitions_that_an_upgrade_leaves_out(reader: Reader, definitions: Cluster) -> None:
    reader.type(INSTALLED[INSIDE])
    before = uids(definitions)
    reader.follow(PAGE, INSIDE, UNSEEN | {" --set crds.enabled=true": ""})
    assert uids(definitions) == before
