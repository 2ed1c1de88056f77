"""A cluster from rendered manifests, applied again and again with pruning: it stays the same cluster, with its keys."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kubeslurm.cli.up import helm, releases
from kubeslurm.cli.up.helm import Release
from kubeslurm.cli.up.installation import Installation
from tests.support.kubernetes import Kubernetes
from tests.support.slurm import KINDS, Slurm
from tests.support.waiting import wait_for

NAMESPACE, NAME = "gitops", "slurm-git"
KEYS = (f"{NAME}-auth-slurm", f"{NAME}-auth-jwt")
INSTANCE, TRACKING = "app.kubernetes.io/instance", "argocd.argoproj.io/tracking-id"
Objects = list[dict[str, Any]]


@pytest.fixture
def git(cluster: Kubernetes, product: Installation, slurm: Slurm) -> Iterator[Slurm]:
    """A cluster that was applied once, beside the first, which is settled: the webhook answers."""
    found = Slurm(cluster, NAMESPACE, NAME)
    try:
        cluster.kubectl("create", "namespace", NAMESPACE)
        apply(found, rendered(product))
        found.wait_until_idle(1)
        yield found
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=true", "--timeout=180s")


def rendered(product: Installation) -> Objects:
    """What a rendering without a cluster gives, marked as Argo CD marks it, by label and by annotation."""
    base = releases.slurm(product.tags, {"nodesets": {"worker": {"replicas": 1, "oversubscribeNode": True}}})
    text = helm.render(Release(NAME, NAMESPACE, base.chart, base.values))
    trees = [tree for tree in yaml.safe_load_all(text) if tree]
    for tree in trees:
        group = tree["apiVersion"].rpartition("/")[0]
        metadata = tree["metadata"]
        metadata.setdefault("labels", {})[INSTANCE] = NAME
        mark = f"{NAME}:{group}/{tree['kind']}:{NAMESPACE}/{metadata['name']}"
        metadata.setdefault("annotations", {})[TRACKING] = mark
    return trees


def apply(git: Slurm, trees: Objects) -> None:
    selected = ("--prune", f"--selector={INSTANCE}={NAME}")
    git.kubectl("apply", *selected, "--filename=-", stdin=yaml.safe_dump_all(trees))


def pruned_by_argo(git: Slurm, trees: Objects) -> list[str]:
    """What Argo CD would delete: what carries its mark, has no owner, and is in no manifest."""
    declared = {(tree["kind"], tree["metadata"]["name"]) for tree in trees}
    kinds = (*KINDS, "statefulsets", "deployments", "services", "configmaps", "secrets")
    return [
        f"{each['kind']}/{each['metadata']['name']}"
        for each in git.items(*kinds)
        if not each["metadata"].get("ownerReferences")
        and (each["kind"], each["metadata"]["name"]) not in declared
        and (
            each["metadata"].get("labels", {}).get(INSTANCE) == NAME
            or TRACKING in each["metadata"].get("annotations", {})
        )
    ]


def keys(git: Slurm) -> dict[str, Any]:
    return {name: git.get("secret", name)["data"] for name in KEYS}


def pods(git: Slurm) -> set[str]:
    return {each["metadata"]["uid"] for each in git.items("pods")}


def test_manifests_that_are_rendered_anew_give_the_same_cluster(git: Slurm, product: Installation) -> None:
    before, running = keys(git), pods(git)
    trees = rendered(product)
    assert not [tree for tree in trees if tree["metadata"]["name"] in KEYS]
    assert pruned_by_argo(git, trees) == []
    apply(git, trees)
    assert keys(git) == before
    # As a pruning of the Secrets that a former chart has rendered: the daemons go on, with the same keys.
    git.kubectl("delete", "secret", *KEYS)
    wait_for("the keys", lambda: all(git.find("secret", name) for name in KEYS))
    assert keys(git) == before
    job = git.submit("srun true")
    git.wait_for_job(job, "COMPLETED")
    assert pods(git) == running
