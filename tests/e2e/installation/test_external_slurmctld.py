"""Workers on Kubernetes for a slurmctld that runs elsewhere: here, that of another namespace stands for it."""

import json
from collections.abc import Iterator

import pytest

from kubeslurm.cli.up.installation import Installation
from tests.support.kubernetes import Kubernetes
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

NAMESPACE = "elsewhere"
NODE = "burst-0"
OBJECTS = """
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata: {name: site}
spec:
  clusterName: slurm_slurm
  external: true
  externalConfig: {host: slurm-controller.slurm, port: 6817}
  slurmKeyRef: {name: site-keys, key: slurm.key}
  jwtKeyRef: {name: site-keys, key: jwt.key}
---
apiVersion: slinky.slurm.net/v1beta1
kind: RestApi
metadata: {name: site}
spec:
  controllerRef: {name: site}
  slurmrestd: {image: $SLURMRESTD}
---
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {name: burst}
spec:
  controllerRef: {name: site}
  replicas: 1
  slurmd:
    image: $SLURMD
    resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 100m, memory: 64Mi}}
"""


@pytest.fixture
def site(cluster: Kubernetes, product: Installation, slurm: Slurm) -> Iterator[Slurm]:
    """The objects for workers of a slurmctld that is not ours to run."""
    found = Slurm(cluster, NAMESPACE, "site")
    keys = {}
    for name, key in (("slurm-auth-slurm", "slurm.key"), ("slurm-auth-jwt", "jwt.key")):
        keys[key] = slurm.get("secret", name)["data"][key]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "site-keys"}, "data": keys}
    text = OBJECTS
    for name in ("slurmrestd", "slurmd"):
        text = text.replace(f"${name.upper()}", f"localhost/{name}:{product.tags[name]}")
    cluster.kubectl("create", "namespace", NAMESPACE)
    try:
        found.kubectl("create", "--filename=-", stdin=json.dumps(secret))
        found.kubectl("apply", "--filename=-", stdin=text)
        yield found
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=true", "--timeout=180s")
    slurm.wait_until_idle(2)


def test_a_worker_joins_works_and_leaves_without_a_trace(site: Slurm, slurm: Slurm) -> None:
    wait_for("the worker to be idle", lambda: slurm.nodes().get(NODE) == "idle")
    assert slurm.run("srun", f"--nodelist={NODE}", "hostname").strip() == NODE
    wait_for(
        "the Controller to be ready",
        lambda: site.conditions("controllers.slinky.slurm.net").get("Ready", {}).get("status") == "True",
    )
    assert not site.get("statefulsets")["items"], "there is no slurmctld of ours"
    site.kubectl("delete", "nodesets.slinky.slurm.net", "burst", "--wait=true", "--timeout=180s")
    wait_for("the record to be gone", lambda: NODE not in slurm.nodes())
