"""A login pod is ready when users can submit from it, not when sshd runs."""

import json
from collections.abc import Iterator

import pytest

from kubeslurm.api.meta import Tree
from tests.support.site import LOGIN, LOGINSET, Records
from tests.support.waiting import wait_for

NAME = "lost"
OPTIONS = "SACKD_OPTIONS"


@pytest.fixture
def lost(plain: Records) -> Iterator[str]:
    """A login set like the usual one, whose sackd looks for slurmctld where there is none."""
    usual = plain.get(LOGINSET, LOGIN)
    login = usual["spec"]["login"] | {"env": [{"name": OPTIONS, "value": "--conf-server nowhere:6817"}]}
    spec = usual["spec"] | {"login": login, "service": {"spec": {"type": "ClusterIP"}}}
    tree = {"apiVersion": usual["apiVersion"], "kind": usual["kind"], "metadata": {"name": NAME}, "spec": spec}
    plain.kubectl("apply", "--filename=-", stdin=json.dumps(tree))
    yield NAME
    plain.kubectl("delete", LOGINSET, NAME)


def pods(plain: Records) -> list[Tree]:
    found = plain.items("pods", selector=f"app.kubernetes.io/instance={NAME}")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def sshd_runs(plain: Records, pod: str) -> bool:
    script = 'kill -0 "$(cat /run/sshd.pid)" && echo runs'
    return "runs" in plain.exec(pod, "login", "sh", "-c", script, check=False)


def test_users_are_sent_to_a_login_pod_only_when_slurmctld_answers_it(plain: Records, lost: str) -> None:
    pod = wait_for("the pod", lambda: pods(plain))[0]["metadata"]["name"]
    wait_for("sshd", lambda: sshd_runs(plain, pod))
    ready = wait_for("the condition", lambda: plain.conditions(LOGINSET, lost).get("Ready"))
    assert (ready["status"], ready["message"]) == ("False", "users can submit from 0 of 1 login pods")

    login = plain.get(LOGINSET, lost)["spec"]["login"] | {"env": None}
    plain.patch(LOGINSET, lost, {"spec": {"login": login}})
    wait_for("a way in", lambda: plain.conditions(LOGINSET, lost)["Ready"]["status"] == "True")
