"""`kubeslurm up` and `down` as users type them, on a cluster of their own: here, and as somebody else's cluster."""

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

from kubeslurm.cli.up import recipes, releases
from kubeslurm.cli.up.login import desk_of_context
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import build as images
from kubeslurm.local.images import buildah
from tests.support.kubernetes import Kubernetes
from tests.support.settled import wait_until_settled
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

NAME = os.environ.get("KUBESLURM_E2E", "e2e") + "-up"
CONTEXT = f"kubeslurm-{NAME}"
RIVAL = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "slurm-operator", "namespace": "default"},
}


@pytest.fixture(scope="module")
def own() -> Iterator[Kubernetes]:
    cluster = Kubernetes(NAME)
    cluster.down(purge=True)
    yield cluster
    cluster.close()
    cluster.down(purge=True)
    desk_of_context(CONTEXT).clear()


@pytest.fixture(scope="module")
def said(own: Kubernetes) -> str:
    """What the first `up` says."""
    return up(own, "--name", NAME, "--nodes", "2")


@pytest.fixture(scope="module")
def foreign(own: Kubernetes, said: str, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Options for the same cluster, emptied, of which only the context of a kubeconfig and a registry are known."""
    done = kubeslurm("down", "--context", CONTEXT, "--yes", "--purge", cluster=own)
    assert done.returncode == 0, done.stderr
    assert not own.kubectl("get", "persistentvolumeclaims", "--namespace=slurm", "--output=name")
    publish(own)
    values = tmp_path_factory.mktemp("values") / "values.yaml"
    values.write_text(json.dumps(releases.this_machine()))
    return ["--context", CONTEXT, "--registry", "localhost", "--values", str(values)]


def publish(cluster: Kubernetes) -> None:
    """Puts the images into the cluster's registry under the tags of a release."""
    chart = {"slurm-operator": "0.1.0", "slurm-operator-webhook": "0.1.0"}
    with Progress() as progress:
        tags = recipes.build(progress)
    for name, tag in tags.items():
        published = f"localhost/{name}:{chart.get(name, '26.05')}"
        buildah.call(Tasks(), "tag", f"localhost/{name}:{tag}", published)
        images.push(published, cluster.registry, ca=cluster.ca)


def kubeslurm(*words: str, cluster: Kubernetes, answer: str = "") -> "subprocess.CompletedProcess[str]":
    program = Path(sys.executable).with_name("kubeslurm")
    env = os.environ | {
        "PATH": f"{cluster.home.run}/bin:{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.home.kubeconfig),
    }
    return subprocess.run(
        [program, *words], input=answer, env=env, capture_output=True, text=True, timeout=580, check=False
    )


def up(cluster: Kubernetes, *words: str) -> str:
    done = kubeslurm("up", *words, cluster=cluster)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def paste(cluster: Kubernetes, said: str, sign: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    """Runs the line with this sign at its end, as it was printed, in a shell."""
    (line,) = (line for line in said.splitlines() if line.startswith("  ") and re.search(sign, line))
    env = os.environ | {"KUBECONFIG": str(cluster.home.kubeconfig)}
    return subprocess.run(
        ["bash", "-c", line], input=typed, env=env, capture_output=True, text=True, timeout=300, check=False
    )


def pasted(cluster: Kubernetes, said: str, sign: str, typed: str = "") -> str:
    """What that line says."""
    done = paste(cluster, said, sign, typed)
    assert done.returncode == 0, f"{done.args[-1]}: {done.stdout}{done.stderr}"
    return done.stdout


def job_ids(records: str) -> set[str]:
    return {line.split()[0] for line in records.splitlines() if line[:1].isdigit() and "COMPLETED" in line}


def lines_work(cluster: Kubernetes, said: str, before: Set[str] = frozenset()) -> Set[str]:
    """Pastes the lines for logging in and for the records of jobs; the jobs in them, more than there were before."""
    assert {"worker-0", "worker-1"} <= set(said.split())
    assert {"worker-0", "worker-1"} <= set(pasted(cluster, said, r"config login$", "sinfo --Node\n").split())
    # After `down` and `up` the database may take longer to come back than everything else.
    look = partial(paste, cluster, said, r"sacct .*$")
    return wait_for("the record of another job", lambda: found if (found := job_ids(look().stdout)) > before else None)


def submitted(cluster: Kubernetes, said: str) -> int:
    """Pastes the line that submits a job; the number of that job."""
    return int(pasted(cluster, said, r"sbatch .*$").removeprefix("Submitted batch job "))


def workers(cluster: Kubernetes) -> int:
    pods = ("get", "pods", "--namespace=slurm", "--selector=app.kubernetes.io/name=slurmd", "--output=name")
    return len(cluster.kubectl(*pods).split())


def test_up_ends_with_lines_that_work_when_pasted(own: Kubernetes, said: str) -> None:
    assert "Slurm is up after" in said
    lines_work(own, said)
    job = submitted(own, said)
    Slurm(own).wait_for_job(job, "COMPLETED")
    assert "slurm-worker-worker" in pasted(own, said, r"get slurm$")
    assert "scaled" in pasted(own, said, r"scale nodeset/\S+ --replicas=3$")
    wait_for("a third worker", lambda: workers(own) == 3)
    own.kubectl("scale", "nodeset/slurm-worker-worker", "--replicas=2", "--namespace=slurm")
    wait_for("two workers again", lambda: workers(own) == 2)


@pytest.mark.usefixtures("said")
def test_a_second_up_changes_nothing_and_says_so(own: Kubernetes) -> None:
    wait_until_settled(Slurm(own), 2)
    before = own.kubectl("get", "pods,secrets", "--all-namespaces", "--output=name")
    assert "nothing was changed" in up(own, "--name", NAME)
    assert own.kubectl("get", "pods,secrets", "--all-namespaces", "--output=name") == before


@pytest.mark.usefixtures("said")
def test_history_outlives_down_and_up(own: Kubernetes) -> None:
    said = up(own, "--name", NAME)
    before = lines_work(own, said)
    last = submitted(own, said)
    done = kubeslurm("down", "--name", NAME, cluster=own)
    assert "is down" in done.stdout, done.stderr
    said = up(own, "--name", NAME)
    lines_work(own, said, before)
    # The first job of `up` came between: had the last one before `down` been lost, its number would be used again.
    assert submitted(own, said) > last + 1


def test_nothing_happens_to_a_cluster_of_somebody_else_without_a_yes(own: Kubernetes, foreign: list[str]) -> None:
    done = kubeslurm("up", *foreign, cluster=own, answer="n\n")
    assert done.returncode == 1
    assert CONTEXT in done.stdout
    assert not own.kubectl(
        "get", "deployments", "--all-namespaces", "--selector=app.kubernetes.io/instance=slurm-operator"
    )


def test_up_refuses_beside_another_operator(own: Kubernetes, foreign: list[str]) -> None:
    renewed = datetime.now(UTC) + timedelta(hours=1)  # and so still of late, however long the command takes
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": f"{renewed:%FT%T.%fZ}"}
    own.kubectl("apply", "--filename=-", stdin=json.dumps(RIVAL | {"spec": spec}))
    try:
        done = kubeslurm("up", *foreign, "--yes", cluster=own)
    finally:
        own.kubectl("delete", "lease", "slurm-operator", "--namespace=default")
    assert done.returncode == 1
    assert "Another slurm-operator is at work on this cluster, in the namespace default" in done.stderr


def test_up_works_on_a_cluster_of_somebody_else_and_history_outlives_down(own: Kubernetes, foreign: list[str]) -> None:
    before = lines_work(own, up(own, *foreign, "--yes"))
    done = kubeslurm("down", "--context", CONTEXT, "--yes", cluster=own)
    assert done.returncode == 0, done.stderr
    lines_work(own, up(own, *foreign, "--yes"), before)
