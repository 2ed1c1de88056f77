"""Volume claims: those that a NodeSet makes for its workers, and one that a Controller is given."""

import json
from collections.abc import Iterator

import pytest

from tests.support.nodeset import Workers
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

CLAIM = "scratch-disks-0"
TEMPLATE = {
    "metadata": {"name": "scratch"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
}


@pytest.fixture
def disks(slurm: Slurm) -> Iterator[Workers]:
    """A NodeSet whose worker has a disk of its own, which goes when the NodeSet shrinks."""
    found = Workers.create(
        slurm,
        "disks",
        "disk-",
        oversubscribeNode=True,
        volumeClaimTemplates=[TEMPLATE],
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"},
    )
    try:
        wait_for("the worker", lambda: slurm.nodes().get("disk-0") == "idle")
        yield found
    finally:
        found.delete()
        slurm.kubectl("delete", "persistentvolumeclaim", CLAIM, "--ignore-not-found")


def test_a_workers_claim_goes_when_its_nodeset_shrinks(disks: Workers) -> None:
    assert disks.slurm.find("persistentvolumeclaim", CLAIM)
    disks.scale(0)
    wait_for("the claim to be gone", lambda: disks.slurm.find("persistentvolumeclaim", CLAIM) is None)


def test_a_worker_that_is_wanted_again_gets_a_new_claim(disks: Workers) -> None:
    before, claim = disks.uids(), disks.slurm.get("persistentvolumeclaim", CLAIM)["metadata"]["uid"]
    disks.scale(0)
    wait_for("the worker to go", lambda: all("deletionTimestamp" in pod["metadata"] for pod in disks.pods().values()))
    disks.scale(1)
    wait_for("another worker", lambda: disks.uids() and disks.uids() != before)
    wait_for("it to be idle", lambda: disks.slurm.nodes().get("disk-0") == "idle")
    assert disks.slurm.get("persistentvolumeclaim", CLAIM)["metadata"]["uid"] != claim


def test_a_claim_outlives_a_cordoned_pod_and_a_deleted_nodeset(disks: Workers) -> None:
    """It goes only when the NodeSet shrinks, as its policy says."""
    uid = disks.slurm.get("persistentvolumeclaim", CLAIM)["metadata"]["uid"]
    disks.slurm.kubectl("annotate", "pod", "disks-0", "nodeset.slinky.slurm.net/pod-cordon=true")
    wait_for("the drain", lambda: disks.slurm.nodes().get("disk-0") == "drained")
    disks.slurm.kubectl("delete", "pod", "disks-0", "--grace-period=1", "--wait=true")
    wait_for("the worker", lambda: disks.slurm.nodes().get("disk-0") == "idle")
    assert disks.slurm.get("persistentvolumeclaim", CLAIM)["metadata"]["uid"] == uid
    disks.slurm.kubectl("delete", "nodesets.slinky.slurm.net", "disks", "--wait=true", "--timeout=180s")
    assert disks.slurm.get("persistentvolumeclaim", CLAIM)["metadata"].get("deletionTimestamp") is None


def test_backups_need_a_claim_that_can_be_shared(slurm: Slurm) -> None:
    tree = slurm.get("controllers.slinky.slurm.net", slurm.name)
    own = {"enabled": True, "existingClaim": f"statesave-{slurm.name}-controller-0"}
    wanted = {
        "apiVersion": tree["apiVersion"],
        "kind": tree["kind"],
        "metadata": {"name": "refused", "namespace": slurm.namespace},
        "spec": tree["spec"] | {"persistence": own, "ha": {"enabled": True}},
    }
    assert "use a claim with ReadWriteMany" in slurm.cluster.refusal(json.dumps(wanted))
