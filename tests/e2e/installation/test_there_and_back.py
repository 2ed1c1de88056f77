"""From Slinky's release, which holds the definitions, to ours and back as the documentation says, while a job runs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeslurm.api.crds import crds
from kubeslurm.api.names import FINALIZER, second_owner
from kubeslurm.cli.up import helm, releases
from kubeslurm.cli.up.installation import Installation
from tests.support.documented import Reader
from tests.support.kubernetes import Kubernetes
from tests.support.nodeset import Workers, operators
from tests.support.predecessor.chart import WORKERS
from tests.support.predecessor.cluster import Predecessor
from tests.support.predecessor.parts import NAME, NODESET
from tests.support.predecessor.release import CRDS_RELEASE, PLACE, RELEASE, write_charts
from tests.support.settled import is_as_desired
from tests.support.slurm import KINDS, Slurm
from tests.support.waiting import wait_for

NAMESPACE = "there-and-back"
PAGE = "from-slinky.md"
SLINKYS = "oci://ghcr.io/slinkyproject/charts/slurm-operator --version 1.2.1"
DEFINITIONS = " ".join(f"crd/{name}" for name in crds())


@pytest.fixture
def reader(cluster: Kubernetes, product: Installation, slurm: Slurm, tmp_path: Path) -> Iterator[Reader]:
    """Somebody whose cluster has Slinky's operator, in a release with the definitions, instead of ours."""
    made = Reader(cluster, tmp_path)
    write_charts(tmp_path / "old", f"localhost/slurm-operator:{product.tags['slurm-operator']}")
    (tmp_path / "slinky-values.yaml").write_text(json.dumps({"crds": {"enabled": True}}))
    (tmp_path / "operator-values.yaml").write_text(json.dumps(releases.operator(product.tags).values))
    try:
        for name in (RELEASE, CRDS_RELEASE):
            helm.uninstall(product.access, name, PLACE)
        made.type(f"kubectl annotate {DEFINITIONS} helm.sh/resource-policy-")
        install = f"helm install {RELEASE} old/{RELEASE} --namespace {PLACE} --values slinky-values.yaml"
        made.type(f"{install} --take-ownership --wait --timeout=3m")
        yield made
    finally:
        made.type(f"kubectl annotate --overwrite {DEFINITIONS} helm.sh/resource-policy=keep")
        helm.install(product.access, releases.operator(product.tags), wait=True)
        chart = f"charts/{CRDS_RELEASE} --namespace {PLACE}"
        made.type(f"helm upgrade --install {CRDS_RELEASE} {chart} --take-ownership")
        cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=true", "--timeout=180s")


@pytest.fixture
def old(cluster: Kubernetes, product: Installation, reader: Reader) -> Predecessor:
    """A cluster of that operator with idle workers."""
    made = Predecessor(cluster, NAMESPACE, product.tags)
    made.install()
    made.wait_until_idle(WORKERS)
    return made


def holder(cluster: Kubernetes) -> str:
    """The one who holds the Lease."""
    lease = cluster.read("leases.coordination.k8s.io", PLACE, RELEASE) or {}
    return str(lease.get("spec", {}).get("holderIdentity") or "")


def is_slinkys(cluster: Kubernetes) -> bool:
    """Whether the other operator acts: it names itself after its host, not after its pod."""
    return holder(cluster).startswith(f"{RELEASE}_")


def is_ours(cluster: Kubernetes) -> bool:
    return any(holder(cluster).startswith(name) for name in operators(cluster))


def uids(cluster: Kubernetes) -> dict[str, str]:
    found = (cluster.read("customresourcedefinitions.apiextensions.k8s.io", name=name, namespace="") for name in crds())
    return {tree["metadata"]["name"]: tree["metadata"]["uid"] for tree in found if tree}


def held(slurm: Slurm) -> list[str]:
    """The objects that our operator holds."""
    found = slurm.items(*KINDS)
    return [each["metadata"]["name"] for each in found if FINALIZER in each["metadata"].get("finalizers", ())]


def test_a_job_notices_neither_the_way_there_nor_the_way_back(
    old: Predecessor, reader: Reader, cluster: Kubernetes
) -> None:
    wait_for("the other operator to act", lambda: is_slinkys(cluster))
    workers = Workers(old, NODESET)
    job = workers.run_job(600)
    before, made, definitions = old.stays(), old.workloads(), uids(cluster)
    assert len(definitions) == len(crds())

    reader.follow(PAGE, "The definitions are in the operator's release")
    wait_for("our operator to act", lambda: is_ours(cluster))
    wait_for("everything to be as desired", lambda: is_as_desired(old))
    wait_for("our operator to hold the objects", lambda: held(old))
    assert (old.stays(), old.workloads(), uids(cluster)) == (before, made, definitions)

    reader.follow(PAGE, "Go back", {SLINKYS: f"old/{RELEASE}"})
    wait_for("the other operator to act", lambda: is_slinkys(cluster))
    assert not held(old)
    assert old.find("configmap", second_owner(NAME)) is None
    assert (old.workloads(), uids(cluster)) == (made, definitions)
    workers.finish(job)
    assert old.stays() == before
