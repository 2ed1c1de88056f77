"""`kubeslurm up` and `down`, on this machine and with --context, on a separate cluster."""

import json
from collections.abc import Set
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from kubeslurm.cli.up import releases
from tests.support.kubernetes import Kubernetes
from tests.support.nodeset import Workers
from tests.support.settled import wait_until_settled
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for
from tests.up.support import CONTEXT, NAME, Machine, kubeslurm, run_line, try_line, up

OTHER_OPERATOR = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "slurm-operator", "namespace": "default"},
}


@pytest.fixture
def context_options(machine: Machine, tmp_path: Path) -> list[str]:
    """Options for `up` on the same cluster by its kubeconfig context; everything was removed from it before."""
    machine.clear()
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps(releases.local_values()))
    return ["--context", CONTEXT, "--registry", "localhost", "--values", str(values)]


def completed_jobs(sacct: str) -> set[str]:
    return {line.split()[0] for line in sacct.splitlines() if line[:1].isdigit() and "COMPLETED" in line}


def first_job_states(cluster: Kubernetes, output: str, after: int) -> set[str]:
    """The states of the jobs that `up` has run after a job of this id."""
    rows = [line.split() for line in run_line(cluster, output, r"sacct .*$").splitlines()]
    return {row[-2] for row in rows if row[0].isdigit() and int(row[0]) > after and row[1] == "hostname"}


def check_lines(cluster: Kubernetes, output: str, before: Set[str] = frozenset()) -> Set[str]:
    """Run the lines that log in and list jobs; returns the completed jobs, which must be more than before."""
    names = set(Workers(Slurm(cluster)).both())
    assert names <= set(output.split())
    assert names <= set(run_line(cluster, output, r"config login$", "sinfo --Node\n").split())
    # After `down` and `up`, the database may be ready later than everything else.
    sacct = partial(try_line, cluster, output, r"sacct .*$")

    def more_jobs() -> set[str] | None:
        found = completed_jobs(sacct().stdout)
        return found if found > before else None

    return wait_for("another completed job", more_jobs)


def submit(cluster: Kubernetes, output: str) -> int:
    """Run the line that submits a job, and return the job id."""
    return int(run_line(cluster, output, r"sbatch .*$").removeprefix("Submitted batch job "))


def workers(cluster: Kubernetes) -> int:
    pods = ("get", "pods", "--namespace=slurm", "--selector=app.kubernetes.io/name=slurmd", "--output=name")
    return len(cluster.kubectl(*pods).split())


def test_the_lines_that_up_prints_work_in_a_shell(cluster: Kubernetes, first_output: str) -> None:
    assert "Slurm is up after" in first_output
    check_lines(cluster, first_output)
    Slurm(cluster).wait_for_job(submit(cluster, first_output), "COMPLETED")
    assert "slurm-worker-worker" in run_line(cluster, first_output, r"get slurm$")
    assert "scaled" in run_line(cluster, first_output, r"scale nodeset/\S+ --replicas=3$")
    wait_for("a third worker", lambda: workers(cluster) == 3)
    cluster.kubectl("scale", "nodeset/slurm-worker-worker", "--replicas=2", "--namespace=slurm")
    wait_for("two workers again", lambda: workers(cluster) == 2)


@pytest.mark.usefixtures("first_output")
def test_a_second_up_changes_nothing(cluster: Kubernetes) -> None:
    wait_until_settled(Slurm(cluster), 2)
    before = cluster.kubectl("get", "pods,secrets", "--all-namespaces", "--output=name")
    assert "nothing was changed" in up(cluster, "--name", NAME)
    assert cluster.kubectl("get", "pods,secrets", "--all-namespaces", "--output=name") == before


@pytest.mark.usefixtures("first_output")
def test_jobs_in_accounting_survive_down_and_up(cluster: Kubernetes) -> None:
    output = up(cluster, "--name", NAME)
    before = check_lines(cluster, output)
    last = submit(cluster, output)
    done = kubeslurm("down", "--name", NAME, cluster=cluster)
    assert "is down" in done.stdout, done.stderr
    output = up(cluster, "--name", NAME)
    check_lines(cluster, output, before)
    # `up` ran a job in between. If slurmctld had lost the last job before `down`, it would reuse its id.
    assert submit(cluster, output) > last + 1
    # It was offered to workers that had registered: Slurm ends the jobs of a node that comes back as rebooted.
    assert first_job_states(cluster, output, last) == {"COMPLETED"}


def test_up_with_a_context_changes_nothing_without_confirmation(
    cluster: Kubernetes, context_options: list[str]
) -> None:
    done = kubeslurm("up", *context_options, cluster=cluster, answer="n\n")
    assert done.returncode == 1
    assert CONTEXT in done.stdout
    assert not cluster.kubectl(
        "get", "deployments", "--all-namespaces", "--selector=app.kubernetes.io/instance=slurm-operator"
    )


def test_up_refuses_if_another_operator_is_active(cluster: Kubernetes, context_options: list[str]) -> None:
    renewed = datetime.now(UTC) + timedelta(hours=1)  # so that it is recent, however long the command takes
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 3600, "renewTime": f"{renewed:%FT%T.%fZ}"}
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(OTHER_OPERATOR | {"spec": spec}))
    try:
        done = kubeslurm("up", *context_options, "--yes", cluster=cluster)
    finally:
        cluster.kubectl("delete", "lease", "slurm-operator", "--namespace=default")
    assert done.returncode == 1
    assert "Another slurm-operator is active on this cluster, in the namespace default" in done.stderr


def test_up_works_with_a_context_and_jobs_in_accounting_survive_down(
    cluster: Kubernetes, context_options: list[str]
) -> None:
    before = check_lines(cluster, up(cluster, *context_options, "--yes"))
    done = kubeslurm("down", "--context", CONTEXT, "--yes", cluster=cluster)
    assert done.returncode == 0, done.stderr
    check_lines(cluster, up(cluster, *context_options, "--yes"), before)
