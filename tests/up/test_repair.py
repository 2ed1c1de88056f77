"""Whatever a user deletes or breaks, the next `kubeslurm up` mends, or says in one sentence what to do."""

import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kubeslurm.cli.up import helm, releases
from tests.support.nodeset import Workers
from tests.support.slurm import NODESET, RESTAPI, Slurm
from tests.support.waiting import wait_for
from tests.up.support import NAME, PROGRAM, Machine, environment, kubeslurm

OPERATOR = ("deployment/slurm-operator", f"--namespace={releases.OPERATOR_NAMESPACE}")


@pytest.fixture
def slurm(machine: Machine) -> Slurm:
    """Slurm as `up` leaves it."""
    machine.install()
    return Slurm(machine.cluster)


def repair(slurm: Slurm) -> str:
    """What the next `up` says about the repair; it must succeed, and run a job unless users' jobs are in the way."""
    done = kubeslurm("up", "--name", NAME, cluster=slurm.cluster)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


@contextmanager
def running_job(slurm: Slurm) -> Iterator[int]:
    """A job that runs until the end of the block."""
    job = slurm.submit("sleep 86400", "--ntasks=1")
    try:
        slurm.wait_for_job(job, "RUNNING")
        yield job
    finally:
        slurm.run("scancel", str(job), check=False)


def test_deleted_objects_and_a_stopped_operator_are_put_back(slurm: Slurm) -> None:
    before = {each["metadata"]["uid"] for each in slurm.items(RESTAPI, NODESET)}
    slurm.cluster.kubectl("scale", *OPERATOR, "--replicas=0")
    slurm.kubectl("delete", "restapi,nodeset", "--all", "--wait=false")
    slurm.kubectl("delete", "service/slurm-mariadb")
    said = repair(slurm)
    assert "Deployment slurm-operator does not run" in said
    # The operator, repaired first, may have let it go by the time that `up` looks.
    assert re.search("RestApi slurm is (being deleted|missing)", said)
    assert "Service slurm-mariadb is missing" in said
    assert before.isdisjoint(each["metadata"]["uid"] for each in slurm.items(RESTAPI, NODESET))
    slurm.wait_until_idle(len(Workers(slurm).names()))


def test_a_job_runs_on_while_the_objects_around_it_are_put_back(slurm: Slurm) -> None:
    with running_job(slurm) as job:
        slurm.kubectl("delete", "restapi/slurm", "--wait=false")
        assert "RestApi slurm is being deleted" in repair(slurm)

        slurm.kubectl("delete", "controller/slurm", "--wait=false")
        refused = kubeslurm("up", "--name", NAME, cluster=slurm.cluster)
        assert refused.returncode == 1
        assert "Controller slurm is being deleted, and waits until its NodeSets are deleted, too." in refused.stderr
        (advice,) = re.findall(r"`kubectl (annotate [^`]*)`", refused.stderr)
        slurm.cluster.kubectl(*shlex.split(advice))
        repair(slurm)
        shown = slurm.run("scontrol", "show", "job", str(job))
        assert "JobState=RUNNING" in shown
        assert "Restarts=0" in shown


def test_a_helm_that_was_killed_in_the_middle_is_no_obstacle(slurm: Slurm) -> None:
    options = ("--reuse-values", "--set=operator.image.tag=broken", "--wait")
    chart = str(releases.CHARTS / releases.OPERATOR)
    argv = [
        helm._program(), "upgrade", releases.OPERATOR, chart, f"--namespace={releases.OPERATOR_NAMESPACE}",
        f"--kubeconfig={slurm.cluster.kubeconfig}", *options,
    ]  # fmt: skip
    pending = ("get", "secrets", "--selector=owner=helm,status=pending-upgrade", "--all-namespaces", "--output=name")
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        try:
            wait_for("the upgrade to be under way", lambda: slurm.cluster.kubectl(*pending))
            image = "--output=jsonpath={.spec.template.spec.containers[0].image}"
            wait_for("the broken image", lambda: slurm.cluster.kubectl("get", *OPERATOR, image).endswith(":broken"))
        finally:
            killed.kill()
    repair(slurm)
    assert not slurm.cluster.kubectl(*pending)
    assert not slurm.cluster.kubectl("get", *OPERATOR, image).endswith(":broken")


def test_one_command_at_a_time_works_on_a_cluster_and_an_interrupted_one_leaves_no_trace(slurm: Slurm) -> None:
    # Where the tests run in the background, a shell has switched SIGINT off for them and all that they start.
    argv = ["env", "--default-signal=INT", PROGRAM, "up", "--name", NAME]
    with subprocess.Popen(
        argv, env=environment(slurm.cluster), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as first:
        assert first.stderr is not None
        first.stderr.readline()  # it is at work
        first.send_signal(signal.SIGSTOP)  # and stays so, however little there is to do
        for command in ("up", "down"):
            refused = kubeslurm(command, "--name", NAME, cluster=slurm.cluster)
            assert refused.returncode == 1
            assert f"`kubeslurm up --name {NAME}` (process {first.pid}) is at work on the cluster" in refused.stderr
        first.send_signal(signal.SIGINT)
        first.send_signal(signal.SIGCONT)
        _, said = first.communicate(timeout=120)
        assert (first.returncode, "Run the same command again to continue." in said) == (130, True), said
    repair(slurm)


def test_a_node_that_was_killed_and_its_object_deleted_comes_back(slurm: Slurm) -> None:
    node = Workers(slurm).pod(Workers(slurm).away_from_slurmctld())["spec"]["nodeName"]
    slurm.cluster.node(node).kill()
    slurm.cluster.kubeconfig.unlink()
    assert f"start {node}" in repair(slurm)
    slurm.cluster.kubectl("delete", "node", node)
    assert f"register {node}" in repair(slurm)
    slurm.wait_until_idle(2)
