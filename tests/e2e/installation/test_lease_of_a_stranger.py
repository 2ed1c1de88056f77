"""Somebody who may write a Lease in a namespace of their own does not stop the operator of the whole cluster."""

import json

from tests.support import audit
from tests.support.installation import OPERATOR
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

NAMESPACE = "strangers"
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "slurm-operator", "namespace": NAMESPACE},
    "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600},
}
TOKEN = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "Token",
    "metadata": {"name": "stranger"},
    "spec": {"jwtKeyRef": {"name": "slurm-auth-jwt", "key": "jwt.key"}, "username": "stranger"},
}


def is_judged(slurm: Slurm) -> bool:
    """Whether the operator has asked what the accounts beside the Lease may do."""
    asked = audit.asked_of(slurm.cluster, "slinky", OPERATOR)
    return any(each.objectRef.resource == "subjectaccessreviews" for each in asked)


def test_the_operator_goes_on_while_a_stranger_holds_a_lease_of_its_name(slurm: Slurm) -> None:
    slurm.cluster.kubectl("create", "namespace", NAMESPACE)
    try:
        slurm.cluster.kubectl("apply", "--filename=-", stdin=json.dumps(LEASE))
        wait_for("the operator to judge the Lease", lambda: is_judged(slurm))
        slurm.kubectl("apply", "--filename=-", stdin=json.dumps(TOKEN))
        try:
            wait_for("the operator to act", lambda: slurm.find("secret", "stranger-jwt-stranger"))
        finally:
            slurm.kubectl("delete", "tokens.slinky.slurm.net", "stranger")
    finally:
        slurm.cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
