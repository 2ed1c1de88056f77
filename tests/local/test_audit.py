"""The audit log of the API server."""

import json

from kubeslurm.local.cluster import network
from kubeslurm.local.cluster.cluster import Cluster
from tests.local.support import Namespace, Tree, wait_for
from tests.support.kubernetes import run


def audit_events(cluster: Cluster) -> list[Tree]:
    # The last line may be incomplete.
    return [json.loads(line) for line in cluster.log("audit").read_text().split("\n")[:-1]]


def test_only_requests_of_service_accounts_are_logged(cluster: Cluster, namespace: Namespace) -> None:
    token = namespace.kubectl("create", "token", "default").strip()
    server = f"https://{cluster.spec.address}:{network.API_PORT}"
    access = ("--kubeconfig=/dev/null", f"--server={server}", f"--certificate-authority={cluster.ca}")
    kubectl = cluster.kubectl_command()[0]
    command = [kubectl, *access, f"--token={token}", f"--namespace={namespace.name}", "get", "secret", "some"]
    assert "forbidden" in run(command).stderr

    def found() -> list[Tree]:
        return [each for each in audit_events(cluster) if each.get("objectRef", {}).get("namespace") == namespace.name]

    (event,) = wait_for("the request in the audit log", found)
    assert (event["verb"], event["objectRef"]["resource"], event["responseStatus"]["code"]) == ("get", "secrets", 403)
    users = {each["user"]["username"] for each in audit_events(cluster)}
    assert all(name.startswith("system:serviceaccount:") for name in users)
    assert not any(name.startswith("system:serviceaccount:kube-system:") for name in users)
