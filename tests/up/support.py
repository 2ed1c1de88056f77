"""The `kubeslurm` command as users type it, and the lines that it prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.kubernetes import Kubernetes

NAME = os.environ.get("KUBESLURM_E2E", "e2e") + "-up"
CONTEXT = f"kubeslurm-{NAME}"


PROGRAM = Path(sys.executable).with_name("kubeslurm")


def kubeslurm(*args: str, cluster: Kubernetes, answer: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [PROGRAM, *args],
        input=answer,
        env=environment(cluster),
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )


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
    return subprocess.run(
        ["bash", "-c", line], input=stdin, env=env, capture_output=True, text=True, timeout=300, check=False
    )


def run_line(cluster: Kubernetes, output: str, pattern: str, stdin: str = "") -> str:
    """Run that line and return its output; it must succeed."""
    done = try_line(cluster, output, pattern, stdin)
    assert done.returncode == 0, f"{done.args[-1]}: {done.stdout}{done.stderr}"
    return done.stdout
