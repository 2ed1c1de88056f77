"""What pods can count on: DNS, Services, volumes, limits, and everything kubectl does with a pod."""

import http.client
import socket
import subprocess
import sys
import urllib.request

import pytest

from kubeslurm.local.cluster.cluster import Cluster
from tests.local.support import Namespace, Tree, claim, pod, service, wait_for, web


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
    assert wait_for("an answer by short name", lambda: _ask(namespace, "http://site")) == "site"
    full = f"http://site.{namespace.name}.svc.cluster.local"
    assert wait_for("an answer by full name", lambda: _ask(namespace, full)) == "site"


def _ask(namespace: Namespace, url: str) -> str:
    return namespace.sh("client", f"wget -T 10 -qO- {url} || true")


def test_pods_on_different_nodes_reach_each_other_directly(namespace: Namespace) -> None:
    namespace.start(web("site", node="node-2"), pod("client", node="node-1"))
    address = namespace.get("pod/site")["status"]["podIP"]
    assert wait_for("an answer of the pod", lambda: _ask(namespace, f"http://{address}:8080")) == "site"


def test_node_ports_answer_on_the_clusters_own_loopback_address(namespace: Namespace, cluster: Cluster) -> None:
    namespace.start(web("site", node="node-2"))
    namespace.apply(service("site", type="NodePort"))
    port = namespace.get("service/site")["spec"]["ports"][0]["nodePort"]
    url = f"http://{cluster.spec.address}:{port}"
    assert wait_for("an answer on the NodePort", lambda: fetch(url)) == "site"
    namespace.kubectl("delete", "service", "site")
    wait_for("the port to close with its Service", lambda: not _listens(cluster.spec.address, port))


def _listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


def test_services_and_pods_have_their_addresses_inside_the_fabric(namespace: Namespace, cluster: Cluster) -> None:
    namespace.start(web("site", node="node-2"))
    namespace.apply(service("site"))
    address = namespace.get("service/site")["spec"]["clusterIP"]
    code = f"import urllib.request as r; print(r.urlopen('http://{address}', timeout=10).read().decode())"

    def fetched() -> str:
        return cluster.fabric_exec([sys.executable, "-c", code]).stdout.strip()

    assert wait_for("an answer of the Service", fetched) == "site"


def test_the_default_class_gives_a_volume_that_an_ordinary_user_can_write(namespace: Namespace) -> None:
    namespace.apply(claim("data", "ReadWriteOnce"))
    namespace.start(_writer("writer", "data", "node-1"))
    assert namespace.sh("writer", "echo kept > /data/file; stat -c '%u %g' /data/file") == "401 401"
    namespace.kubectl("delete", "pod", "writer")
    namespace.start(_writer("reader", "data", "node-2"))
    assert namespace.sh("reader", "cat /data/file") == "kept"


def test_a_shared_volume_is_written_and_read_on_two_nodes_at_once(namespace: Namespace) -> None:
    namespace.apply(claim("data", "ReadWriteMany", "shared"))
    namespace.start(_writer("one", "data", "node-1"), _writer("two", "data", "node-2"))
    namespace.sh("one", "echo hello > /data/file")
    assert namespace.sh("two", "cat /data/file; touch /data/other && echo done") == "hello\ndone"


def test_a_volume_goes_with_its_claim(namespace: Namespace, cluster: Cluster) -> None:
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
    # containerd hears of the end and of its reason on two ways; once in a while the end is first, and has no reason.
    wait_for("its end for its memory", lambda: "OOMKilled" in _ends(namespace.get("pod/greedy")))


def _ends(found: Tree) -> set[str]:
    """How the container of a pod has ended, now and the last time."""
    statuses = found["status"].get("containerStatuses", [])
    states = [status.get(which, {}) for status in statuses for which in ("state", "lastState")]
    return {state["terminated"]["reason"] for state in states if "terminated" in state}


def test_a_cpu_limit_reaches_the_containers_control_group(namespace: Namespace) -> None:
    namespace.start(pod("slow", container={"resources": {"limits": {"cpu": "250m"}}}))
    quota = "cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null || cut -d' ' -f1 /sys/fs/cgroup/cpu.max"
    assert namespace.sh("slow", quota) == "25000"


def test_logs_are_kept_and_exec_passes_input_and_exit_code(namespace: Namespace, cluster: Cluster) -> None:
    namespace.start(pod("talker", "echo spoken; exec sleep 2147483647"))
    assert wait_for("its words", lambda: namespace.kubectl("logs", "talker").strip()) == "spoken"
    assert namespace.kubectl("exec", "-i", "talker", "--", "tr", "a-z", "A-Z", stdin="loud") == "LOUD"
    command = cluster.kubectl_command("-n", namespace.name, "exec", "talker", "--", "sh", "-c", "exit 7")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 7


def test_port_forward_reaches_a_pod_from_the_host(namespace: Namespace, cluster: Cluster) -> None:
    namespace.start(web("site"))
    command = cluster.kubectl_command("-n", namespace.name, "port-forward", "pod/site", ":8080")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout is not None
            port = forward.stdout.readline().split("127.0.0.1:")[1].split(" ")[0]
            assert wait_for("an answer of the pod", lambda: fetch(f"http://127.0.0.1:{port}")) == "site"
        finally:
            forward.terminate()


@pytest.mark.parametrize("node", ["node-1", "node-2"])
def test_a_privileged_pod_may_make_control_groups(namespace: Namespace, node: str) -> None:
    script = "cd /sys/fs/cgroup/memory 2>/dev/null || cd /sys/fs/cgroup; mkdir made && rmdir made"
    namespace.start(pod("strong", node=node, container={"securityContext": {"privileged": True}}))
    namespace.sh("strong", script)


def test_config_maps_reach_running_pods(namespace: Namespace) -> None:
    namespace.kubectl("create", "configmap", "words", "--from-literal=word=one")
    namespace.start(
        pod(
            "reader",
            container={"volumeMounts": [{"name": "words", "mountPath": "/words"}]},
            volumes=[{"name": "words", "configMap": {"name": "words"}}],
        )
    )
    assert namespace.sh("reader", "cat /words/word") == "one"
    namespace.kubectl("patch", "configmap", "words", "-p", '{"data":{"word":"two"}}')
    namespace.kubectl("annotate", "pod", "reader", "touched=yes")
    wait_for("the new content", lambda: namespace.sh("reader", "cat /words/word") == "two")
