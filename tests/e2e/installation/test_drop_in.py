"""Our images in an installation of Slinky's operator: with its accounts, flags, probes and certificate they work."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kubeslurm.cli.up.installation import Installation
from tests.support import audit, installation
from tests.support.audit import Asked
from tests.support.installation import OPERATOR, WEBHOOK
from tests.support.kubernetes import Kubernetes
from tests.support.nodeset import Workers
from tests.support.settled import wait_for_webhook
from tests.support.slurm import CONTROLLER, Slurm
from tests.support.waiting import wait_for

NAMESPACE = "drop-in"
DAEMONS = "app.kubernetes.io/name in (slurmctld,slurmdbd,slurmrestd,slurmd,login)"
CONFIGURATION = f"validatingwebhookconfiguration/{WEBHOOK}"


@contextmanager
def ours_away(cluster: Kubernetes) -> Iterator[None]:
    """Nobody at work where our chart is installed; its admission is as it was afterwards."""
    admission = json.loads(cluster.kubectl("get", CONFIGURATION, "--output=json"))
    del admission["metadata"]["resourceVersion"]
    try:
        run_ours(cluster, 0)
        wait_for("nobody of ours", lambda: not cluster.kubectl("get", "pods", "--namespace=slinky", "--output=name"))
        yield
    finally:
        cluster.kubectl("replace", "--filename=-", stdin=json.dumps(admission))
        run_ours(cluster, 1)
        ready(cluster, "slinky")
        wait_for_webhook(cluster)


def run_ours(cluster: Kubernetes, count: int) -> None:
    both = (f"deployment/{OPERATOR}", f"deployment/{WEBHOOK}")
    cluster.kubectl("scale", "--namespace=slinky", f"--replicas={count}", *both)


def ready(cluster: Kubernetes, namespace: str) -> None:
    for part in (WEBHOOK, OPERATOR):
        cluster.kubectl("rollout", "status", f"deployment/{part}", f"--namespace={namespace}", "--timeout=180s")


@pytest.fixture
def as_before(slurm: Slurm) -> Iterator[None]:
    extra = slurm.get(CONTROLLER, "slurm")["spec"]["extraConf"]
    yield
    Workers(slurm).scale(2)
    slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": extra}})
    wait_for("the first configuration to be live again", slurm.config_is_live)
    slurm.wait_until_idle(2)


@pytest.fixture
def installed(cluster: Kubernetes, product: Installation, as_before: None) -> Iterator[Kubernetes]:
    """Such an installation with our images, in the place of our own."""
    objects, admission = installation.whole(NAMESPACE, product.tags)
    with ours_away(cluster):
        try:
            cluster.kubectl("apply", "--filename=-", stdin=as_list(objects))
            cluster.kubectl("replace", "--filename=-", stdin=json.dumps(admission))
            yield cluster
        finally:
            # Who works there needs its rights until it has handed the Lease over.
            options = (f"--namespace={NAMESPACE}", "--cascade=foreground", "--timeout=180s")
            cluster.kubectl("delete", "deployment", "--all", *options)
            cluster.kubectl("delete", "--ignore-not-found", "--timeout=180s", "--filename=-", stdin=as_list(objects))


def as_list(objects: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def forbidden(cluster: Kubernetes) -> list[Asked]:
    """Requests of the operator that its account has no right to."""
    asked = audit.asked_of(cluster, NAMESPACE, OPERATOR)
    assert asked
    return [each for each in asked if each.forbidden]


def uids(slurm: Slurm) -> set[str]:
    """Those that stay: one that is being shut down belongs to something earlier."""
    pods = [pod["metadata"] for pod in slurm.items("pods", selector=DAEMONS)]
    return {pod["uid"] for pod in pods if "deletionTimestamp" not in pod}


def test_our_images_do_the_work_in_an_installation_made_for_others(installed: Kubernetes, slurm: Slurm) -> None:
    before, workers = uids(slurm), Workers(slurm)
    ready(installed, NAMESPACE)
    wait_for_webhook(installed)
    # Admitted by the one, acted upon by the other.
    extra = slurm.get(CONTROLLER, "slurm")["spec"]["extraConf"]
    slurm.patch(CONTROLLER, "slurm", {"spec": {"extraConf": f"{extra}\nMaxJobCount=3456"}})
    wait_for("the change to be live", lambda: slurm.config("MaxJobCount") == "3456")
    wait_for("the status to say so", slurm.config_is_live)
    workers.scale(3)
    workers.wait_until_idle(3)
    assert before < uids(slurm)
    workers.scale(2)
    workers.wait_until_idle(2)
    assert uids(slurm) == before
    # Those rights do not reach to the logs of pods, which only make some messages more precise.
    assert [each for each in forbidden(installed) if each.objectRef.subresource != "log"] == []
