"""`kubeslurm up` and `down`, on this machine and with --context, on a separate cluster."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Set
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from kubeslurm.cli.up import images, login, releases
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import buildah, store
from tests.support.kubernetes import Kubernetes, run
from tests.support.nodeset import Workers
from tests.support.settled import wait_until_settled
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

NAME = os.environ.get("KUBESLURM_E2E", "e2e") + "-up"
CONTEXT = f"kubeslurm-{NAME}"
OTHER_OPERATOR = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "slurm-operator", "namespace": "default"},
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Kubernetes]:
    """A cluster that does not exist before these tests, and is deleted after them."""
    cluster = Kubernetes(NAME)
    cluster.down(purge=True)
    yield cluster
    cluster.close()
    cluster.down(purge=True)
    login.for_context(CONTEXT).delete()


class Machine:
    """The cluster as a test needs it, whichever test came before."""

    def __init__(self, cluster: Kubernetes) -> None:
        self.cluster = cluster
        self.output = ""  # of the `up` that made the present installation by name
        self.published = False

    def install(self) -> str:
        """What `up` by name has printed when it installed Slurm."""
        self.output = self.output or up(self.cluster, "--name", NAME, "--nodes", "2")
        return self.output

    def clear(self) -> None:
        """Removes everything from the cluster, which runs on with the images of a release in its registry."""
        if not self.cluster.running:
            self.install()
        if self.cluster.kubectl("get", "secrets", "--all-namespaces", "--selector=owner=helm", "--output=name"):
            done = kubeslurm("down", "--context", CONTEXT, "--yes", "--purge", cluster=self.cluster)
            assert done.returncode == 0, done.stderr
        assert not self.cluster.kubectl("get", "persistentvolumeclaims", "--namespace=slurm", "--output=name")
        self.output = ""
        if not self.published:
            publish(self.cluster)
            self.published = True


@pytest.fixture(scope="module")
def machine(cluster: Kubernetes) -> Machine:
    return Machine(cluster)


@pytest.fixture
def first_output(machine: Machine) -> str:
    """The output of the `up` that has installed Slurm."""
    return machine.install()


@pytest.fixture
def context_options(machine: Machine, tmp_path: Path) -> list[str]:
    """Options for `up` on the same cluster by its kubeconfig context; everything was removed from it before."""
    machine.clear()
    values = tmp_path / "values.yaml"
    values.write_text(json.dumps(releases.local_values()))
    return ["--context", CONTEXT, "--registry", "localhost", "--values", str(values)]


def publish(cluster: Kubernetes) -> None:
    """Push the images to the cluster's registry with the tags of a release."""
    release_tags = {"slurm-operator": "0.1.0", "slurm-operator-webhook": "0.1.0"}
    with Progress() as progress:
        tags = images.build(images.groups(), tasks=Tasks(), progress=progress)
    for name, tag in tags.items():
        published = f"localhost/{name}:{release_tags.get(name, '26.05')}"
        buildah.run(Tasks(), "tag", f"localhost/{name}:{tag}", published)
        store.push(published, cluster.registry, ca=cluster.ca)


def kubeslurm(*args: str, cluster: Kubernetes, answer: str = "") -> "subprocess.CompletedProcess[str]":
    program = Path(sys.executable).with_name("kubeslurm")
    env = os.environ | {
        "PATH": f"{cluster.home.run}/bin:{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.home.kubeconfig),
    }
    return run([str(program), *args], stdin=answer, env=env, deadline=580)


def up(cluster: Kubernetes, *args: str) -> str:
    done = kubeslurm("up", *args, cluster=cluster)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def try_line(cluster: Kubernetes, output: str, pattern: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    """Run the printed line that matches the pattern in a shell."""
    (line,) = (line for line in output.splitlines() if line.startswith("  ") and re.search(pattern, line))
    env = os.environ | {"KUBECONFIG": str(cluster.home.kubeconfig)}
    return run(["bash", "-c", line], stdin=stdin, env=env)


def run_line(cluster: Kubernetes, output: str, pattern: str, stdin: str = "") -> str:
    """Run that line and return its output; it must succeed."""
    done = try_line(cluster, output, pattern, stdin)
    assert done.returncode == 0, f"{done.args[-1]}: {done.stdout}{done.stderr}"
    return done.stdout


def completed_jobs(sacct: str) -> set[str]:
    return {line.split()[0] for line in sacct.splitlines() if line[:1].isdigit() and "COMPLETED" in line}


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
