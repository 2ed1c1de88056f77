"""Objects that could not work are refused, by a webhook that looks after its own certificates."""

import pytest

from tests.support import audit
from tests.support.kubernetes import Kubernetes
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


def held(cluster: Kubernetes, file: str) -> str:
    """A file of the webhook's Secret, in base64; empty while there is no Secret."""
    path = file.replace(".", "\\.")
    where = (f"--namespace={NAMESPACE}", f"--output=jsonpath={{.data['{path}']}}", "--ignore-not-found")
    return cluster.kubectl("get", "secret", SECRET, *where)


def trusted(cluster: Kubernetes) -> set[str]:
    """The authorities by which the API server knows the webhook."""
    output = "--output=jsonpath={.webhooks[*].clientConfig.caBundle}"
    return set(cluster.kubectl("get", "validatingwebhookconfiguration", WEBHOOK, output).split())


@pytest.fixture
def deployed(cluster: Kubernetes) -> Kubernetes:
    status = ("rollout", "status", f"deployment/{WEBHOOK}", f"--namespace={NAMESPACE}", "--timeout=180s")
    cluster.kubectl(*status)
    return cluster


def test_a_missing_config_map_is_named_with_the_remedy(deployed: Kubernetes) -> None:
    # Until the Service leads to its pod, the API server says only that nobody answers.
    wait_for("an answer with the remedy", lambda: "create it first" in deployed.refusal(CONTROLLER))
    assert "names the ConfigMap not-there" in deployed.refusal(CONTROLLER)


def test_a_lost_certificate_is_made_anew_and_trusted(deployed: Kubernetes) -> None:
    before = held(deployed, "tls.crt")
    assert before
    deployed.kubectl("delete", "secret", SECRET, f"--namespace={NAMESPACE}")
    after = wait_for("a new certificate", lambda: held(deployed, "tls.crt"))
    assert after != before
    wait_for("trust in its authority", lambda: trusted(deployed) == {held(deployed, "ca.crt")})
    wait_for("an answer under the new certificate", lambda: "create it first" in deployed.refusal(CONTROLLER))


def test_the_operator_is_refused_nothing(cluster: Kubernetes) -> None:
    asked = audit.asked_of(cluster, NAMESPACE, "slurm-operator")
    assert asked
    assert [each for each in asked if each.forbidden] == []
