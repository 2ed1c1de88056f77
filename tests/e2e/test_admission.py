"""Objects that could not work are refused, by a webhook that looks after its own certificates."""

import subprocess

import pytest

from kubeslurm.local.cluster.cluster import Cluster
from tests.support import audit
from tests.support.waiting import wait_for

NAMESPACE = "slinky"
WEBHOOK = "slurm-operator-webhook"
SECRET = f"{WEBHOOK}-certificates"
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


def held(cluster: Cluster, file: str) -> str:
    """A file of the webhook's Secret, in base64; empty while there is no Secret."""
    path = file.replace(".", "\\.")
    where = (f"--namespace={NAMESPACE}", f"--output=jsonpath={{.data['{path}']}}", "--ignore-not-found")
    return cluster.kubectl("get", "secret", SECRET, *where)


def trusted(cluster: Cluster) -> set[str]:
    """The authorities by which the API server knows the webhook."""
    output = "--output=jsonpath={.webhooks[*].clientConfig.caBundle}"
    return set(cluster.kubectl("get", "validatingwebhookconfiguration", WEBHOOK, output).split())


@pytest.fixture
def deployed(cluster: Cluster) -> Cluster:
    status = ("rollout", "status", f"deployment/{WEBHOOK}", f"--namespace={NAMESPACE}", "--timeout=180s")
    cluster.kubectl(*status)
    return cluster


def test_a_missing_config_map_is_named_with_the_remedy(deployed: Cluster) -> None:
    # Until the Service leads to its pod, the API server says only that nobody answers.
    wait_for("an answer with the remedy", lambda: "create it first" in refusal(deployed))
    assert "names the ConfigMap not-there" in refusal(deployed)


def test_a_lost_certificate_is_made_anew_and_trusted(deployed: Cluster) -> None:
    before = held(deployed, "tls.crt")
    assert before
    deployed.kubectl("delete", "secret", SECRET, f"--namespace={NAMESPACE}")
    after = wait_for("a new certificate", lambda: held(deployed, "tls.crt"))
    assert after != before
    wait_for("trust in its authority", lambda: trusted(deployed) == {held(deployed, "ca.crt")})
    wait_for("an answer under the new certificate", lambda: "create it first" in refusal(deployed))


def test_the_operator_is_refused_nothing(cluster: Cluster) -> None:
    asked = audit.asked_of(cluster, NAMESPACE, "slurm-operator")
    assert asked
    assert [each for each in asked if each.forbidden] == []
