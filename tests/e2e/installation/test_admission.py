"""Objects that could not work are refused, by a webhook that looks after its own certificates."""

import pytest

from tests.support import audit
from tests.support.kubernetes import Kubernetes
from tests.support.settled import UNUSABLE, wait_for_webhook
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

NAMESPACE = "slinky"
WEBHOOK = "slurm-operator-webhook"
SECRET = f"{WEBHOOK}-certificates"


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
def deployed(slurm: Slurm) -> Kubernetes:
    wait_for_webhook(slurm.cluster)
    return slurm.cluster


def test_a_missing_config_map_is_named_with_the_remedy(deployed: Kubernetes) -> None:
    assert "names the ConfigMap not-there" in deployed.refusal(UNUSABLE)


def test_a_lost_certificate_is_made_anew_and_trusted(deployed: Kubernetes) -> None:
    before = held(deployed, "tls.crt")
    assert before
    deployed.kubectl("delete", "secret", SECRET, f"--namespace={NAMESPACE}")
    after = wait_for("a new certificate", lambda: held(deployed, "tls.crt"))
    assert after != before
    wait_for("trust in its authority", lambda: trusted(deployed) == {held(deployed, "ca.crt")})
    wait_for_webhook(deployed)


def test_the_operator_is_refused_nothing(slurm: Slurm) -> None:
    asked = audit.asked_of(slurm.cluster, NAMESPACE, "slurm-operator")
    assert asked
    assert [each for each in asked if each.forbidden] == []
