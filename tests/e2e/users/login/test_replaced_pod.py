"""A login pod goes: its successor has the same host keys, and users on the others notice nothing."""

from tests.support.session import connected
from tests.support.settled import statuses
from tests.support.site import Site
from tests.support.waiting import wait_for


def host_keys(site: Site, pod: str) -> set[str]:
    """All three of them, as soon as sshd shows them."""
    address = site.get("pod", pod)["status"]["podIP"]

    def shown() -> set[str]:
        lines = site.cluster.exec_in_network(["ssh-keyscan", "-T", "10", address]).stdout.splitlines()
        keys = {" ".join(line.split()[1:]) for line in lines if line and not line.startswith("#")}
        return keys if len(keys) == 3 else set()

    return wait_for(f"the host keys of {pod}", shown)


def successor(site: Site, stays: str) -> str:
    """The other login pod, once users can submit from it."""
    others = [site.get("pod", name) for name in site.login_pods() if name != stays]
    return next((str(pod["metadata"]["name"]) for pod in others if statuses(pod).get("Ready") == "True"), "")


def test_host_keys_outlive_their_pods_and_other_connections_live_on(site: Site) -> None:
    goes, stays = site.login_pods()
    keys = host_keys(site, goes)
    assert host_keys(site, stays) == keys
    with connected(site, "alice", stays) as session:
        site.kubectl("delete", "pod", goes, "--wait=false")
        new = wait_for("another login pod", lambda: successor(site, stays))
        assert session.says("echo still here") == "still here"
    assert host_keys(site, new) == keys
