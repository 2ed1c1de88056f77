"""The record of what programs in pods ask the API server for."""

import json
import subprocess

from kubeslurm.local.cluster import network
from kubeslurm.local.cluster.cluster import Cluster
from tests.local.support import Namespace, Tree, wait_for


def recorded(cluster: Cluster) -> list[Tree]:
    # What comes after the last end of a line is still being written.
    return [json.loads(line) for line in cluster.log("audit").read_text().split("\n")[:-1]]


def test_requests_of_service_accounts_are_on_record_and_no_others(cluster: Cluster, namespace: Namespace) -> None:
    token = namespace.kubectl("create", "token", "default").strip()
    server = f"https://{cluster.spec.address}:{network.API_PORT}"
    access = ("--kubeconfig=/dev/null", f"--server={server}", f"--certificate-authority={cluster.ca}")
    kubectl = cluster.kubectl_command()[0]
    asked = [kubectl, *access, f"--token={token}", f"--namespace={namespace.name}", "get", "secret", "some"]
    assert "forbidden" in subprocess.run(asked, capture_output=True, text=True, check=False).stderr

    def found() -> list[Tree]:
        return [each for each in recorded(cluster) if each.get("objectRef", {}).get("namespace") == namespace.name]

    (seen,) = wait_for("the request on record", found)
    assert (seen["verb"], seen["objectRef"]["resource"], seen["responseStatus"]["code"]) == ("get", "secrets", 403)
    users = {each["user"]["username"] for each in recorded(cluster)}
    assert all(name.startswith("system:serviceaccount:") for name in users)
    assert not any(name.startswith("system:serviceaccount:kube-system:") for name in users)
