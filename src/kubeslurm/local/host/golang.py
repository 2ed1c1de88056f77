"""Builds our Go modules: the multi-call Kubernetes binary and kwok."""

import os
import re
import shutil
from pathlib import Path

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Progress, Step
from kubeslurm.local.host.tasks import Failed, Tasks

ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-buildvcs=false"}
FLAGS = ("-trimpath",)
LINK = "-s -w"
UNREACHABLE = ("dial tcp", "no such host", "i/o timeout", "connection refused", "TLS handshake")
NEEDED = (1, 26)
INSTALL = "Install Go 1.26 or newer and put `go` on the PATH."


def link_flags(module: Path) -> str:
    """Strip the binary, and stamp it with its version of Kubernetes, or nodes would report v0.0.0-master."""
    found = re.search(r"k8s\.io/kubernetes (v(\d+)\.(\d+)\S+)", (module / "go.mod").read_text())
    values = dict(zip(("gitVersion", "gitMajor", "gitMinor"), found.groups(), strict=True)) if found else {}
    return " ".join([LINK, *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())])


def build(module: Path, package: str, output: Path, *, tasks: Tasks, progress: Progress) -> None:
    """Compile one package of a module. Go keeps every finished part: an interrupted build goes on where it stopped."""
    if shutil.which("go") is None:
        raise LocalError("Go is not installed, and Kubernetes is built from source.", INSTALL)
    what = output.name
    try:
        with progress.step(f"download Go modules of {what}"):
            tasks.run(["go", "mod", "download"], cwd=module, env=ENVIRONMENT)
        with progress.step(f"compile {what}") as step:
            stale = ["go", "list", "-deps", *FLAGS, "-f={{if .Stale}}{{.ImportPath}}{{end}}", package]
            step.update(total=sum(map(bool, tasks.run(stale, cwd=module, env=ENVIRONMENT))), note="packages")
            flags = [*FLAGS, "-v", f"-ldflags={link_flags(module)}"]
            argv = ["go", "build", *flags, "-o", str(output), package]
            tasks.run(argv, cwd=module, env=ENVIRONMENT, on_line=lambda line: _count(line, step))
    except Failed as failure:
        raise failure.as_error(f"Building {what} failed.", _remedy("\n".join(failure.output))) from failure


def _count(line: str, step: Step) -> None:
    # `go build -v` names each package as it is compiled; complaints of the compiler start with "#" or a file name.
    if line and " " not in line and not line.startswith("#"):
        step.done += 1


def _remedy(text: str) -> str:
    if any(sign in text for sign in UNREACHABLE):
        proxy = os.environ.get("GOPROXY", "the default Go module registry")
        return f"Check that this machine reaches {proxy} and run the same command again; it goes on from there."
    return INSTALL if "requires go >=" in text else "Run the same command again; it goes on from there."
