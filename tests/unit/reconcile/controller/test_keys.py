"""The keys of a cluster: made once, put back, never overwritten, and not exchanged under running jobs."""

import base64

import pytest

from kubeslurm.api import names
from kubeslurm.slurm.errors import Unauthorized, Unreachable
from kubeslurm.slurm.rest.models import Job
from kubeslurm.slurm.tokens import OWN_USER, read
from tests.support.controlplane import JWT_KEY, KEY, ControlPlane, started

pytestmark = pytest.mark.looptime

RUNNING = Job(job_id=7, job_state=("RUNNING",))
RESTAPI = {"controllerRef": {"name": "c"}}


def data(plane: ControlPlane, name: str = "keys") -> dict[str, bytes]:
    found = plane.find("secrets", name)
    return {key: base64.b64decode(value) for key, value in found["data"].items()} if found else {}


def given_hash(plane: ControlPlane) -> str:
    found = plane.find("statefulsets", "c-controller") or {}
    return str(found["spec"]["template"]["metadata"]["annotations"][names.SLURM_KEY_HASH])


@pytest.fixture
async def bare(plane: ControlPlane) -> ControlPlane:
    """A Controller whose Secret does not exist."""
    await plane.server.remove("keys", "ns", "secrets")
    await plane.settle()
    return plane


async def test_missing_keys_are_made_and_the_cluster_starts(bare: ControlPlane) -> None:
    await bare.turn()
    made = data(bare)
    assert set(made) == {"slurm.key", "jwt.key"}
    assert made["slurm.key"] != made["jwt.key"]
    assert min(map(len, made.values())) >= 1024
    assert bare.condition("Degraded")["status"] == "False"
    assert len(bare.trials()) == 1
    note = (await bare.sent_events())["KeysCreated"]
    assert not any(key.decode() in note for key in made.values())


async def test_made_keys_are_never_made_again(bare: ControlPlane) -> None:
    await bare.turn()
    before = data(bare)
    await bare.start()
    await bare.turn(3)
    assert data(bare) == before


async def test_nothing_that_prunes_knows_the_secret(bare: ControlPlane) -> None:
    tracking = {"argocd.argoproj.io/tracking-id": "app:slinky.slurm.net/Controller:ns/c"}
    labels = {
        names.LABEL_INSTANCE: "app",
        "kustomize.toolkit.fluxcd.io/name": "app",
        "applyset.kubernetes.io/part-of": "x",
    }
    tree = bare.find("controllers", "c") or {}
    tree["metadata"] |= {"annotations": tracking, "labels": labels}
    await bare.server.put(tree, "controllers")
    await bare.settle()
    await bare.turn()
    metadata = (bare.find("secrets", "keys") or {})["metadata"]
    assert metadata["labels"] == {names.LABEL_MANAGED_BY: "kubeslurm", names.LABEL_CLUSTER: "c"}
    assert not metadata.get("annotations")
    assert not metadata.get("ownerReferences"), "a Controller that is made anew is the same cluster"


@pytest.mark.parametrize("mark", [names.MAKE_SLURM_KEY, names.MAKE_JWT_KEY])
async def test_a_key_that_the_user_brings_is_waited_for(bare: ControlPlane, mark: str) -> None:
    tree = bare.find("controllers", "c") or {}
    tree["metadata"] |= {"annotations": {mark: "false"}}
    await bare.server.put(tree, "controllers")
    await bare.settle()
    await bare.turn()
    assert bare.find("secrets", "keys") is None
    assert bare.condition("Degraded")["reason"] == "SecretKeyNotFound"


async def test_a_key_of_a_slurmctld_elsewhere_is_not_made(bare: ControlPlane) -> None:
    await bare.make_controller(external=True, externalConfig={"host": "ctl", "port": 6817})
    await bare.turn()
    assert bare.find("secrets", "keys") is None


async def test_a_key_of_a_slurmdbd_elsewhere_is_not_made(bare: ControlPlane) -> None:
    await bare.make_controller(accountingRef={"name": "a"})
    await bare.turn()
    assert bare.find("secrets", "keys") is None, "not before it is known where slurmdbd runs"
    config = {"external": True, "externalConfig": {"host": "dbd", "port": 6819}}
    await bare.make("Accounting", "a", "accountings", spec=config)
    await bare.turn()
    assert bare.find("secrets", "keys") is None
    await bare.make("Accounting", "a", "accountings", spec={"external": False})
    await bare.turn()
    assert set(data(bare)) == {"slurm.key", "jwt.key"}


async def test_a_secret_that_lacks_a_key_is_not_completed(bare: ControlPlane) -> None:
    await bare.plain("Secret", "keys", "secrets", data={"slurm.key": "YQ=="})
    await bare.turn()
    assert set(data(bare)) == {"slurm.key"}
    assert "'jwt.key'" in bare.condition("Degraded")["message"]


async def test_a_secret_that_was_deleted_under_a_running_cluster_comes_back_as_it_was(plane: ControlPlane) -> None:
    running = await started(plane)
    before, hash_ = data(running), given_hash(running)
    await running.server.remove("keys", "ns", "secrets")
    await running.settle()
    await running.turn()
    assert data(running) == before
    assert given_hash(running) == hash_


async def test_a_running_cluster_whose_key_nobody_kept_gets_no_other(plane: ControlPlane) -> None:
    running = await started(plane)
    for secret in ("keys", names.kept_keys("c")):
        await running.server.remove(secret, "ns", "secrets")
    await running.settle()
    await running.turn()
    assert running.find("secrets", "keys") is None
    assert running.condition("Degraded")["reason"] == "SecretKeyNotFound"
    assert running.condition("Ready")["status"] == "True", "what runs goes on"


async def test_a_controller_that_is_being_deleted_makes_no_keys(bare: ControlPlane) -> None:
    await bare.make("NodeSet", "n", "nodesets", spec=RESTAPI)
    await bare.mark_deleted()
    await bare.turn()
    assert bare.find("secrets", "keys") is None


async def test_the_copy_follows_the_keys_and_costs_no_write_at_rest(plane: ControlPlane) -> None:
    running = await started(plane)
    kept = running.find("secrets", names.kept_keys("c")) or {}
    assert kept["metadata"]["ownerReferences"][0]["kind"] == "Controller", "it goes with the cluster"
    await running.make_keys(b"another-" * 4)
    await running.turn()
    assert data(running, names.kept_keys("c"))["jwt.key"] == b"another-" * 4
    before = running.writes
    await running.turn()
    assert running.writes == before


async def exchange(plane: ControlPlane) -> None:
    encoded = base64.b64encode(b"another").decode()
    await plane.plain("Secret", "keys", "secrets", data={"slurm.key": encoded, "jwt.key": encoded})


async def test_a_changed_key_waits_while_jobs_run_and_says_so(plane: ControlPlane) -> None:
    running = await started(plane)
    running.slurm.jobs_now = (RUNNING,)
    before = given_hash(running)
    await exchange(running)
    await running.turn(3)
    assert given_hash(running) == before
    found = running.condition("Progressing")
    assert found["reason"] == "KeyChangeWaiting"
    assert "1 jobs are on nodes" in found["message"]
    assert running.condition("Ready")["status"] == "True"
    assert data(running, names.kept_keys("c"))["slurm.key"] == b"slurm", "the former key is not lost"
    running.slurm.jobs_now = ()
    await running.turn(2)
    assert given_hash(running) != before
    assert data(running, names.kept_keys("c"))["slurm.key"] == b"another"
    assert running.condition("Progressing")["reason"] != "KeyChangeWaiting"


async def test_nothing_else_restarts_or_reconfigures_slurmctld_while_a_key_waits(plane: ControlPlane) -> None:
    running = await started(plane)
    running.slurm.jobs_now = (RUNNING,)
    await exchange(running)
    await running.make_controller(slurmctld={"image": "slurmctld:2"}, extraConf="MaxJobCount=7")
    await running.turn()
    await running.end_trial()
    done = running.slurm.reconfigured
    await running.turn(4)
    found = running.find("statefulsets", "c-controller") or {}
    assert "slurmctld:2" not in str(found)
    assert running.slurm.reconfigured == done
    await running.make_keys()
    await running.turn(4)
    assert "slurmctld:2" in str(running.find("statefulsets", "c-controller"))


async def test_a_key_waits_while_slurm_cannot_be_asked(plane: ControlPlane) -> None:
    running = await started(plane)
    running.slurm.failure = Unreachable("no answer")
    before = given_hash(running)
    await exchange(running)
    await running.turn(2)
    assert given_hash(running) == before
    assert "cannot be asked" in running.condition("Progressing")["message"]
    # It has started by itself, with the new Secret.
    running.slurm.failure = Unauthorized("Invalid authentication credential")
    await running.turn(2)
    assert given_hash(running) != before


async def test_our_tokens_are_signed_with_the_key_that_slurmctld_has(plane: ControlPlane) -> None:
    running = await started(plane)
    await running.make("RestApi", "r", "restapis", spec=RESTAPI)
    running.slurm.jobs_now = (RUNNING,)
    await exchange(running)
    await running.turn()
    await running.start()
    await running.slurm_side.reconcile(KEY)
    cluster = running.clusters.of(KEY)
    assert cluster is not None
    assert read(JWT_KEY, cluster.token()).sun == OWN_USER
