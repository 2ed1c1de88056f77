"""What works for pods: DNS, Services, volumes, limits, logs, exec and port-forward."""

import http.client
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from kubeslurm.local.cluster.cluster import Cluster
from tests.local.support import Namespace, Tree, claim, pod, service, wait_for, web
from tests.support.kubernetes import run


def fetch(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310
            text: str = answer.read().decode().strip()
            return text
    except (OSError, http.client.HTTPException):
        return ""


def test_pods_find_services_by_name_and_reach_them_across_nodes(namespace: Namespace) -> None:
    namespace.start(web("site", node="node-1"), pod("client", node="node-2"))
    namespace.apply(service("site"))
    assert wait_for("a response by short name", lambda: _fetch_from_pod(namespace, "http://site")) == "site"
    full = f"http://site.{namespace.name}.svc.cluster.local"
    assert wait_for("a response by full name", lambda: _fetch_from_pod(namespace, full)) == "site"


def _fetch_from_pod(namespace: Namespace, url: str) -> str:
    return namespace.sh("client", f"wget -T 10 -qO- {url} || true")


def test_pods_on_different_nodes_reach_each_other_directly(namespace: Namespace) -> None:
    namespace.start(web("site", node="node-2"), pod("client", node="node-1"))
    address = namespace.get("pod/site")["status"]["podIP"]
    assert wait_for("a response of the pod", lambda: _fetch_from_pod(namespace, f"http://{address}:8080")) == "site"


def test_node_ports_are_reachable_on_the_loopback_address_of_the_cluster(
    namespace: Namespace, cluster: Cluster
) -> None:
    namespace.start(web("site", node="node-2"))
    namespace.apply(service("site", type="NodePort"))
    port = namespace.get("service/site")["spec"]["ports"][0]["nodePort"]
    url = f"http://{cluster.spec.address}:{port}"
    assert wait_for("a response on the NodePort", lambda: fetch(url)) == "site"
    namespace.kubectl("delete", "service", "site")
    wait_for("the port to close with its Service", lambda: not _listens(cluster.spec.address, port))


def _listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


def test_services_are_reachable_from_the_network_of_the_cluster(namespace: Namespace, cluster: Cluster) -> None:
    namespace.start(web("site", node="node-2"))
    namespace.apply(service("site"))
    address = namespace.get("service/site")["spec"]["clusterIP"]
    code = f"import urllib.request as r; print(r.urlopen('http://{address}', timeout=10).read().decode())"

    def fetched() -> str:
        return cluster.exec_in_network([sys.executable, "-c", code]).stdout.strip()

    assert wait_for("a response of the Service", fetched) == "site"


def test_an_ordinary_user_can_write_to_a_volume_of_the_default_class(namespace: Namespace) -> None:
    namespace.apply(claim("data", "ReadWriteOnce"))
    namespace.start(_writer("writer", "data", "node-1"))
    assert namespace.sh("writer", "echo kept > /data/file; stat -c '%u %g' /data/file") == "401 401"
    namespace.kubectl("delete", "pod", "writer")
    namespace.start(_writer("reader", "data", "node-2"))
    assert namespace.sh("reader", "cat /data/file") == "kept"


def test_a_shared_volume_can_be_used_on_two_nodes_at_once(namespace: Namespace) -> None:
    namespace.apply(claim("data", "ReadWriteMany", "shared"))
    namespace.start(_writer("one", "data", "node-1"), _writer("two", "data", "node-2"))
    namespace.sh("one", "echo hello > /data/file")
    assert namespace.sh("two", "cat /data/file; touch /data/other && echo done") == "hello\ndone"


def test_a_volume_is_deleted_with_its_claim(namespace: Namespace, cluster: Cluster) -> None:
    namespace.apply(claim("data", "ReadWriteOnce"))
    namespace.wait("persistentvolumeclaim/data", "jsonpath={.status.phase}=Bound")
    volume = namespace.get("persistentvolumeclaim/data")["spec"]["volumeName"]
    directory = cluster.home.volumes / volume
    assert directory.is_dir()
    namespace.kubectl("delete", "persistentvolumeclaim", "data")
    wait_for("the directory to be removed", lambda: not directory.exists())


def _writer(name: str, claimed: str, node: str) -> dict[str, object]:
    return pod(
        name,
        node=node,
        container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claimed}}],
        securityContext={"runAsUser": 401, "runAsGroup": 401, "fsGroup": 401},
    )


def test_a_pod_over_its_memory_limit_is_oom_killed(namespace: Namespace) -> None:
    namespace.apply(pod("greedy", "tail /dev/zero", container={"resources": {"limits": {"memory": "24Mi"}}}))
    # containerd gets the exit and its reason separately; sometimes the exit comes first and then has no reason.
    wait_for("an OOM kill", lambda: "OOMKilled" in _exit_reasons(namespace.get("pod/greedy")))


def _exit_reasons(found: Tree) -> set[str]:
    """Why the container of a pod exited, now and the last time."""
    statuses = found["status"].get("containerStatuses", [])
    states = [status.get(which, {}) for status in statuses for which in ("state", "lastState")]
    return {state["terminated"]["reason"] for state in states if "terminated" in state}


def test_a_cpu_limit_is_set_in_the_control_group_of_the_container(namespace: Namespace) -> None:
    namespace.start(pod("slow", container={"resources": {"limits": {"cpu": "250m"}}}))
    quota = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cut -d' ' -f1 /sys/fs/cgroup/cpu.max"
    assert namespace.sh("slow", quota) == "25000"


def test_logs_can_be_read_and_exec_passes_input_and_exit_code(namespace: Namespace, cluster: Cluster) -> None:
    namespace.start(pod("talker", "echo text; exec sleep 2147483647"))
    assert wait_for("its log", lambda: namespace.kubectl("logs", "talker").strip()) == "text"
    assert namespace.kubectl("exec", "-i", "talker", "--", "tr", "a-z", "A-Z", stdin="loud") == "LOUD"
    command = cluster.kubectl_command("-n", namespace.name, "exec", "talker", "--", "sh", "-c", "exit 7")
    assert run(command).returncode == 7


def test_port_forward_reaches_a_pod_from_the_host(namespace: Namespace, cluster: Cluster, tmp_path: Path) -> None:
    namespace.start(web("site"))
    command = cluster.kubectl_command("-n", namespace.name, "port-forward", "pod/site", ":8080")
    log = tmp_path / "log"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as forward:
        try:
            found = wait_for("a port", lambda: re.search(r"127\.0\.0\.1:(\d+)", log.read_text()), story=log.read_text)
            assert wait_for("a response of the pod", lambda: fetch(f"http://127.0.0.1:{found[1]}")) == "site"
        finally:
            forward.terminate()


@pytest.mark.parametrize("node", ["node-1", "node-2"])
def test_a_privileged_pod_can_create_control_groups(namespace: Namespace, node: str) -> None:
    script = "cd /sys/fs/cgroup/memory 2>/dev/null || cd /sys/fs/cgroup; mkdir made && rmdir made"
    namespace.start(pod("strong", node=node, container={"securityContext": {"privileged": True}}))
    namespace.sh("strong", script)


def test_a_changed_config_map_reaches_a_running_pod(namespace: Namespace) -> None:
    namespace.kubectl("create", "configmap", "settings", "--from-literal=key=one")
    namespace.start(
        pod(
            "reader",
            container={"volumeMounts": [{"name": "settings", "mountPath": "/settings"}]},
            volumes=[{"name": "settings", "configMap": {"name": "settings"}}],
        )
    )
    assert namespace.sh("reader", "cat /settings/key") == "one"
    namespace.kubectl("patch", "configmap", "settings", "-p", '{"data":{"key":"two"}}')
    namespace.kubectl("annotate", "pod", "reader", "touched=yes")
    wait_for("the new content", lambda: namespace.sh("reader", "cat /settings/key") == "two")
