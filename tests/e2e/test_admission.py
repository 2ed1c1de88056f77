"""Objects that could not work are refused, by a webhook that looks after its own certificates."""

import subprocess

import pytest

from kubeslurm.local.cluster import Cluster
from tests.support.slurm import wait_for

NAMESPACE = "slinky"
SECRET = "slurm-operator-webhook-certificates"
CONTROLLER = """
apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata:
  name: refused
  namespace: default
spec:
  slurmKeyRef: {name: key, key: slurm.key}
  jwtKeyRef: {name: key, key: jwt.key}
  configFileRefs: [{name: not-there}]
"""


def refusal(cluster: Cluster) -> str:
    """What the API server says to a Controller that names a missing ConfigMap."""
    command = cluster.kubectl_command("create", "--dry-run=server", "--filename=-")
    answer = subprocess.run(command, input=CONTROLLER, capture_output=True, text=True, check=False, timeout=30)
    assert answer.returncode != 0
    return answer.stderr


def certificate(cluster: Cluster) -> str:
    output = "--output=jsonpath={.data['tls\\.crt']}"
    return cluster.kubectl("get", "secret", SECRET, f"--namespace={NAMESPACE}", output, "--ignore-not-found")


@pytest.fixture
def deployed(cluster: Cluster) -> Cluster:
    status = ("rollout", "status", "deployment/slurm-operator-webhook", f"--namespace={NAMESPACE}", "--timeout=120s")
    cluster.kubectl(*status)
    return cluster


def test_a_missing_config_map_is_named_with_the_remedy(deployed: Cluster) -> None:
    said = refusal(deployed)
    assert "names the ConfigMap not-there" in said
    assert "create it first" in said


def test_a_lost_certificate_is_made_anew_and_trusted(deployed: Cluster) -> None:
    before = certificate(deployed)
    deployed.kubectl("delete", "secret", SECRET, f"--namespace={NAMESPACE}")
    after = wait_for("a new certificate", lambda: certificate(deployed) or None, within=60)
    assert after != before
    wait_for("trust in the new certificate", lambda: "create it first" in refusal(deployed), within=60)


def test_the_operator_is_refused_nothing(cluster: Cluster) -> None:
    pods = cluster.kubectl(
        "get", "pods", f"--namespace={NAMESPACE}", "-lapp.kubernetes.io/name=slurm-operator", "-oname"
    )
    for pod in pods.split():
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod.removeprefix('pod/')}:8080/proxy/metrics"
        counted = [line for line in cluster.kubectl("get", "--raw", path).splitlines() if "api_requests_total{" in line]
        assert counted
        assert [line for line in counted if 'code="403"' in line] == []
