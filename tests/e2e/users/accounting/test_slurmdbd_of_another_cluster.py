"""A cluster whose slurmdbd is not its own, or not there yet."""

import json
from collections.abc import Iterator

import pytest

from kubeslurm.api.meta import Tree
from tests.support.site import ACCOUNTING, NAMESPACE, Records, Site
from tests.support.slurm import CONTROLLER
from tests.support.waiting import wait_for

ELSEWHERE = "branches"
NAME = "branch"
KEYS: Tree = {
    "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"},
    "jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"},
}


@pytest.fixture
def branch(site: Site) -> Iterator[Records]:
    """A slurmctld in another namespace, whose accounting lacks the password of its database."""
    branch = Records(site.cluster, ELSEWHERE, NAME)
    site.cluster.kubectl("create", "namespace", ELSEWHERE)
    try:
        install(site, branch)
        yield branch
    finally:
        site.cluster.kubectl("delete", "namespace", ELSEWHERE, "--wait=true", "--timeout=180s")


def install(site: Site, branch: Records) -> None:
    for secret in ("slurm-auth-slurm", "slurm-auth-jwt"):
        copy = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}}
        branch.kubectl("apply", "--filename=-", stdin=json.dumps(copy | {"data": site.get("secret", secret)["data"]}))
    storage = {"host": "nowhere", "username": "slurm", "passwordKeyRef": {"name": "nothing", "key": "password"}}
    make(branch, "Accounting", KEYS | {"storageConfig": storage, "slurmdbd": {"image": image(site, "slurmdbd")}})
    make(
        branch,
        "Controller",
        KEYS
        | {
            "accountingRef": {"name": NAME},
            "slurmctld": {"image": image(site, "slurmctld")},
            "persistence": {"enabled": False},
        },
    )


def make(cluster: Records, kind: str, spec: Tree) -> None:
    tree = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "metadata": {"name": NAME}, "spec": spec}
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(tree))


def image(site: Site, name: str) -> str:
    return f"localhost/{name}:{site.product.tags[name]}"


def test_slurmctld_waits_for_its_accounting_and_registers_with_a_slurmdbd_of_another_cluster(
    site: Site, branch: Records
) -> None:
    said = branch.wait_for_condition(CONTROLLER, NAME, "Progressing", "WaitingForAccounting")
    assert f"waiting for Accounting {NAME}" in said
    assert branch.find("statefulset", f"{NAME}-controller") is None

    address = {"host": f"slurm-accounting.{NAMESPACE}", "port": 6819}
    branch.patch(ACCOUNTING, NAME, {"spec": {"external": True, "externalConfig": address}})
    wait_for("slurmctld", lambda: branch.config("AccountingStorageHost") == address["host"])
    wait_for("its registration", lambda: f"{ELSEWHERE}_{NAME}" in site.clusters())
