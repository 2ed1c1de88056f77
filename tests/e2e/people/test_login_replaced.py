"""A login pod goes: its successor has the same host keys, and users on the others notice nothing."""

import subprocess

from tests.support.site import Site
from tests.support.slurm import wait_for


def host_keys(site: Site, pod: str) -> set[str]:
    address = site.get("pod", pod)["status"]["podIP"]
    lines = site.cluster.fabric_exec(["ssh-keyscan", "-T", "10", address]).stdout.splitlines()
    return {" ".join(line.split()[1:]) for line in lines if line and not line.startswith("#")}


def test_host_keys_outlive_their_pods_and_other_connections_live_on(site: Site) -> None:
    goes, stays = site.login_pods()
    keys = host_keys(site, goes)
    assert len(keys) == 3
    assert host_keys(site, stays) == keys
    with connected(site, "alice", stays) as session:
        assert said_after(session, "echo ready") == "ready"
        site.kubectl("delete", "pod", goes, "--wait=false")
        wait_for("two login pods", lambda: goes not in site.login_pods() and site.ready_logins() == 2, within=120)
        assert said_after(session, "echo still here") == "still here"
    (new,) = set(site.login_pods()) - {stays}
    wait_for("the new host keys", lambda: len(host_keys(site, new)) == 3)
    assert host_keys(site, new) == keys


def connected(site: Site, user: str, pod: str) -> "subprocess.Popen[str]":
    """A shell over ssh that stays open."""
    argv = [*site.ssh_command(user, pod), "sh"]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


def said_after(session: "subprocess.Popen[str]", command: str) -> str:
    """The next line that a shell says when it is given a command."""
    assert session.stdin is not None
    assert session.stdout is not None
    session.stdin.write(f"{command}\n")
    return session.stdout.readline().strip()
