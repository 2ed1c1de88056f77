"""`helm uninstall` of a Slurm cluster leaves nothing but its state and its keys."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from kubeslurm.cli.up import helm, releases
from kubeslurm.cli.up.helm import Release
from kubeslurm.cli.up.installation import Installation
from tests.support.kubernetes import Kubernetes
from tests.support.nodeset import Workers, leads
from tests.support.slurm import KINDS, Slurm
from tests.support.waiting import wait_for

NAMESPACE = "second"
KEYS = {"slurm-two-auth-slurm", "slurm-two-auth-jwt"}


@pytest.fixture
def second(cluster: Kubernetes, product: Installation, slurm: Slurm) -> Iterator[Slurm]:
    """Another Slurm cluster beside the first, which is settled: the webhook answers."""
    base = releases.slurm(product.tags, {"nodesets": {"worker": {"replicas": 1, "oversubscribeNode": True}}})
    release = Release("slurm-two", NAMESPACE, base.chart, base.values)
    found = Slurm(cluster, NAMESPACE, "slurm-two")
    try:
        helm.install(product.access, release)
        found.wait_until_idle(1)
        yield found
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=true", "--timeout=180s")


def left(slurm: Slurm) -> list[str]:
    workloads = ("pods", "statefulsets", "deployments", "services", "poddisruptionbudgets", "controllerrevisions")
    names = [each["metadata"]["name"] for each in slurm.items(*KINDS, *workloads, "configmaps", "secrets")]
    return [name for name in names if "kube-root-ca" not in name and name not in KEYS]


def keys(slurm: Slurm) -> dict[str, str]:
    return {name: str(slurm.get("secret", name)["data"]) for name in KEYS}


def test_nothing_but_the_state_volume_and_the_keys_is_left(second: Slurm, product: Installation) -> None:
    before = keys(second)
    helm.uninstall(product.access, "slurm-two", NAMESPACE)
    wait_for("everything to be gone", lambda: not left(second))
    assert keys(second) == before
    claims = second.kubectl("get", "persistentvolumeclaims", "--output=name").split()
    assert claims == ["persistentvolumeclaim/statesave-slurm-two-controller-0"]


def test_the_state_comes_back_with_a_cluster_that_went_after_its_operator(second: Slurm, product: Installation) -> None:
    before, made = second.submit("true"), keys(second)
    second.wait_for_job(before, "COMPLETED")
    try:
        helm.uninstall(product.access, releases.OPERATOR, releases.OPERATOR_NAMESPACE)
        helm.uninstall(product.access, "slurm-two", NAMESPACE)
        wait_for("everything to be gone", lambda: not left(second))
    finally:
        helm.install(product.access, releases.operator(product.tags), wait=True)
    base = releases.slurm(product.tags, {"nodesets": {"worker": {"replicas": 1, "oversubscribeNode": True}}})
    helm.install(product.access, msgspec.structs.replace(base, name="slurm-two", namespace=NAMESPACE))
    second.wait_until_idle(1)
    assert second.submit("true") > before
    assert keys(second) == made


def test_a_foreground_deletion_of_all_objects_waits_for_the_job(second: Slurm) -> None:
    """As Argo CD deletes an application."""
    workers = Workers(second, "slurm-two-worker-worker")
    job = workers.run_job(600)
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in second.items("pods")}
    for kind in KINDS:
        second.kubectl("delete", kind, "--all", "--cascade=foreground", "--wait=false")
    wait_for("the drain", lambda: "draining" in second.nodes().values())
    # By then garbage collection has looked at every child.
    wait_for("its end", lambda: not any("foregroundDeletion" in finalizers(each) for each in second.items(*KINDS)))
    assert {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in second.items("pods")} == before
    workers.finish(job)
    wait_for("everything to be gone", lambda: not second.items(*KINDS, "pods", "statefulsets", "deployments"))
    assert not second.find("configmap", "slurm-two-second-owner")


def finalizers(tree: dict[str, Any]) -> list[str]:
    found: list[str] = tree["metadata"].get("finalizers", [])
    return found


def test_an_operator_that_starts_in_the_middle_still_drains(second: Slurm, product: Installation) -> None:
    workers = Workers(second, "slurm-two-worker-worker")
    job = workers.run_job(600)
    uids = workers.uids()
    with ThreadPoolExecutor(max_workers=1) as pool:
        removing = pool.submit(helm.uninstall, product.access, "slurm-two", NAMESPACE)
        wait_for("the deletion", lambda: "deletionTimestamp" in second.get("controller", "slurm-two")["metadata"])
        # A release may hold its keys, and slurmctld's answers can be had only with one of them.
        second.kubectl("delete", "secret", "slurm-two-auth-jwt")
        wait_for("the drain", lambda: any("drain" in state for state in second.nodes().values()))
        workers.kill_operator()
        wait_for("another operator to lead", lambda: leads(second))
        assert workers.uids() == uids
        assert second.job_state(job) == "RUNNING"
        second.run("scancel", str(job))
        wait_for("everything to be gone", lambda: not left(second))
        removing.result(timeout=180)
