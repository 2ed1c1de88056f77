"""The `kubeslurm` command as users type it, the lines that it prints, and the cluster that it makes."""

import os
import re
import subprocess
import sys
from pathlib import Path

from kubeslurm.cli.up import images
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import buildah, store
from tests.support.kubernetes import Kubernetes, run

NAME = os.environ.get("KUBESLURM_E2E", "e2e") + "-up"
CONTEXT = f"kubeslurm-{NAME}"
PROGRAM = str(Path(sys.executable).with_name("kubeslurm"))


def kubeslurm(*args: str, cluster: Kubernetes, answer: str = "") -> "subprocess.CompletedProcess[str]":
    return run([PROGRAM, *args], stdin=answer, env=environment(cluster), deadline=580)


def environment(cluster: Kubernetes) -> dict[str, str]:
    """With kubectl on the PATH, and the context of the cluster."""
    return os.environ | {
        "PATH": f"{cluster.home.run}/bin:{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.home.kubeconfig),
    }


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


def publish(cluster: Kubernetes) -> None:
    """Push the images to the cluster's registry with the tags of a release."""
    release_tags = {"slurm-operator": "0.1.0", "slurm-operator-webhook": "0.1.0"}
    with Progress() as progress:
        tags = images.build(images.groups(), tasks=Tasks(), progress=progress)
    for name, tag in tags.items():
        published = f"localhost/{name}:{release_tags.get(name, '26.05')}"
        buildah.run(Tasks(), "tag", f"localhost/{name}:{tag}", published)
        store.push(published, cluster.registry, ca=cluster.ca)
