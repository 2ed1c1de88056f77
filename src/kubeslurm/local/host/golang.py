"""Builds our Go modules with the Go of this machine: the multi-call Kubernetes binary and kwok."""

import os
import re
import shutil
from pathlib import Path

from kubeslurm.local.errors import LocalError
from kubeslurm.local.host.progress import Progress, Step
from kubeslurm.local.host.tasks import CommandError, Tasks

ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-buildvcs=false"}
FLAGS = ("-trimpath",)
LINK = "-s -w"
UNREACHABLE = ("dial tcp", "no such host", "i/o timeout", "connection refused", "TLS handshake")
MIN_VERSION = (1, 26)
INSTALL = "Install Go 1.26 or newer and put `go` on the PATH."


def link_flags(module: Path) -> str:
    """Linker flags that strip the binary and set its Kubernetes version, or nodes would report v0.0.0-master."""
    found = re.search(r"k8s\.io/kubernetes (v(\d+)\.(\d+)\S+)", (module / "go.mod").read_text())
    values = dict(zip(("gitVersion", "gitMajor", "gitMinor"), found.groups(), strict=True)) if found else {}
    return " ".join([LINK, *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())])


def build(module: Path, package: str, output: Path, *, tasks: Tasks, progress: Progress) -> None:
    """Compile one package of a module. Go caches every compiled package, so an interrupted build can be resumed."""
    if shutil.which("go") is None:
        raise LocalError("Go is not installed, and Kubernetes is built from source.", INSTALL)
    name = output.name
    try:
        with progress.step(f"download Go modules of {name}"):
            tasks.run(["go", "mod", "download"], cwd=module, env=ENVIRONMENT)
        with progress.step(f"compile {name}") as step:
            stale = ["go", "list", "-deps", *FLAGS, "-f={{if .Stale}}{{.ImportPath}}{{end}}", package]
            step.update(total=sum(map(bool, tasks.run(stale, cwd=module, env=ENVIRONMENT))), note="packages")
            flags = [*FLAGS, "-v", f"-ldflags={link_flags(module)}"]
            argv = ["go", "build", *flags, "-o", str(output), package]
            tasks.run(argv, cwd=module, env=ENVIRONMENT, on_line=lambda line: _count(line, step))
    except CommandError as failure:
        raise failure.as_error(f"Building {name} failed.", _remedy("\n".join(failure.output))) from failure


def _count(line: str, step: Step) -> None:
    # `go build -v` prints each package as it is compiled; errors of the compiler start with "#" or a file name.
    if line and " " not in line and not line.startswith("#"):
        step.done += 1


def _remedy(text: str) -> str:
    if any(message in text for message in UNREACHABLE):
        proxy = os.environ.get("GOPROXY", "the default Go module registry")
        return f"Check that this machine reaches {proxy} and run the same command again; it resumes the build."
    return INSTALL if "requires go >=" in text else "Run the same command again; it resumes the build."
