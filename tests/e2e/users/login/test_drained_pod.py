"""Another sssd.conf: new logins get new pods, and a session in an old one lasts until its user ends it."""

import base64
import json
from collections.abc import Iterator

import pytest

from kubeslurm.api.meta import Tree
from tests.support.session import connected
from tests.support.site import LOGIN, LOGINSET, SLOWLY, Site
from tests.support.waiting import wait_for

NAME = "patient"
SECRET = "patient-sssd"
# Starts an interactive job that no terminal holds, and says its id.
IN_BACKGROUND = (
    "setsid srun --job-name=patient sleep 600 > /dev/null 2>&1 < /dev/null & "
    "until squeue --me --name=patient --noheader --format=%i | grep .; do sleep 1; done"
)


def sssd_conf(site: Site, addition: str = "") -> None:
    """The users of the usual login set, in a Secret of our own."""
    ref = site.get(LOGINSET, LOGIN)["spec"]["sssdConfRef"]
    usual = base64.b64decode(site.get("secret", ref["name"])["data"][ref["key"]]).decode()
    data = {"sssd.conf": usual + addition}
    tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "stringData": data}
    site.kubectl("apply", "--filename=-", stdin=json.dumps(tree))


def ready(site: Site) -> str:
    """The login pod that takes users."""
    (name,) = site.login_pods(NAME) or ("",)
    return name if name and site.ready_logins(NAME) == 1 and not is_progressing(site) else ""


def is_progressing(site: Site) -> bool:
    return site.conditions(LOGINSET, NAME)["Progressing"]["reason"] == "Starting"


@pytest.fixture
def pod(site: Site) -> Iterator[str]:
    """The pod of a login set like the usual one, with one replica and an sssd.conf of its own."""
    usual = site.get(LOGINSET, LOGIN)
    own: Tree = {"replicas": 1, "sssdConfRef": {"name": SECRET, "key": "sssd.conf"}, "service": {}}
    tree = {"apiVersion": usual["apiVersion"], "kind": usual["kind"], "metadata": {"name": NAME}}
    sssd_conf(site)
    site.kubectl("apply", "--filename=-", stdin=json.dumps(tree | {"spec": usual["spec"] | own}))
    try:
        yield wait_for("the login pod", lambda: ready(site), within=SLOWLY)
    finally:
        site.kubectl("delete", LOGINSET, NAME)
        site.kubectl("delete", "secret", SECRET)


def test_sessions_and_interactive_jobs_outlive_another_sssd_conf(site: Site, pod: str) -> None:
    with connected(site, "alice", pod) as session:
        sssd_conf(site, "\n# changed\n")
        message = site.wait_for_condition(LOGINSET, NAME, "Progressing", "Draining")
        assert f"logged out of {pod}," in message
        (new,) = site.login_pods(NAME)
        assert site.ssh("alice", "echo in", pod=new).strip() == "in"
        wait_for("the door to close", lambda: "being replaced" in site.refusal("alice", pod=pod))
        job = int(session.says(IN_BACKGROUND))
        site.wait_for_job(job, "RUNNING")
    # Its user has left, as from a tmux: the pod stays for the job.
    wait_for("the session to end", lambda: not site.exec(pod, "login", "pgrep", "sshd-session", check=False).strip())
    site.wait_for_job(job, "RUNNING")
    site.run("scancel", str(job), check=False)  # which on a busy machine is done before Slurm has said so
    wait_for("the old pod to go", lambda: site.find("pod", pod) is None)
