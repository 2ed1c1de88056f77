"""`helm uninstall` of a Slurm cluster leaves nothing but what retention says."""

from collections.abc import Iterator

import msgspec
import pytest

from kubeslurm.cli import helm, releases
from kubeslurm.cli.helm import Release
from kubeslurm.cli.product import Product
from kubeslurm.local.cluster import Cluster
from tests.support.slurm import Slurm, wait_for

NAMESPACE = "second"


@pytest.fixture
def second(cluster: Cluster, product: Product) -> Iterator[Slurm]:
    """Another Slurm cluster beside the first."""
    base = releases.slurm(product.tags, {"nodesets": {"worker": {"replicas": 1, "oversubscribeNode": True}}})
    release = Release("slurm-two", NAMESPACE, base.chart, base.values)
    helm.install(product.access, release)
    slurm = Slurm(cluster, NAMESPACE, "slurm-two")
    slurm.wait_until_idle(1, within=120)
    yield slurm
    cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=true", "--timeout=120s")


def left(slurm: Slurm) -> list[str]:
    kinds = "controllers.slinky.slurm.net,restapis.slinky.slurm.net,nodesets.slinky.slurm.net"
    workloads = "pods,statefulsets,deployments,services,poddisruptionbudgets,controllerrevisions"
    text = slurm.kubectl("get", f"{kinds},{workloads}", "--output=name")
    own = slurm.kubectl("get", "configmaps,secrets", "--output=name").split()
    return text.split() + [name for name in own if "kube-root-ca" not in name]


def test_nothing_but_the_state_volume_is_left(second: Slurm, product: Product) -> None:
    helm.uninstall(product.access, "slurm-two", NAMESPACE)
    wait_for("everything to be gone", lambda: not left(second), within=120)
    claims = second.kubectl("get", "persistentvolumeclaims", "--output=name").split()
    assert claims == ["persistentvolumeclaim/statesave-slurm-two-controller-0"]


def test_the_state_comes_back_with_the_cluster(second: Slurm, product: Product) -> None:
    before = second.submit("true")
    second.wait_for_job(before, "COMPLETED")
    helm.uninstall(product.access, "slurm-two", NAMESPACE)
    wait_for("everything to be gone", lambda: not left(second), within=120)
    base = releases.slurm(product.tags, {"nodesets": {"worker": {"replicas": 1, "oversubscribeNode": True}}})
    helm.install(product.access, msgspec.structs.replace(base, name="slurm-two", namespace=NAMESPACE))
    second.wait_until_idle(1, within=120)
    assert second.submit("true") > before
