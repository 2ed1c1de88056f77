"""Builds our Go modules: the multi-call Kubernetes binary and kwok."""

import os
import shutil
from pathlib import Path

from kubeslurm.local.errors import LocalError
from kubeslurm.local.progress import Progress, Step
from kubeslurm.local.tasks import Failed, Tasks

ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-buildvcs=false"}
FLAGS = ("-trimpath",)
LINK = "-s -w"
NEEDED = (1, 26)
INSTALL = "Install Go 1.26 or newer and put `go` on the PATH."


def link_flags(version: str) -> str:
    """Strip the binary and stamp the version, or nodes would report v0.0.0-master."""
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join([LINK, *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())])


def pinned(module: Path, path: str) -> str:
    """The version of a dependency that go.mod asks for."""
    for line in (module / "go.mod").read_text().splitlines():
        words = line.removeprefix("require").split()
        if len(words) >= 2 and words[0] == path:
            return words[1]
    raise LocalError(f"{module / 'go.mod'} does not require {path}.", "Restore the file from the repository.")


def build(module: Path, package: str, output: Path, *, stamp: str, tasks: Tasks, progress: Progress) -> None:
    """Compile one package of a module, stamped with its version of the dependency `stamp`.

    Go keeps every finished part: an interrupted build goes on where it stopped.
    """
    if shutil.which("go") is None:
        raise LocalError("Go is not installed, and Kubernetes is built from source.", INSTALL)
    what = output.name
    link = link_flags(pinned(module, stamp)) if stamp else LINK
    try:
        with progress.step(f"download Go modules of {what}"):
            tasks.run(["go", "mod", "download"], cwd=module, env=ENVIRONMENT)
        with progress.step(f"compile {what}") as step:
            stale = ["go", "list", "-deps", *FLAGS, "-f={{if .Stale}}{{.ImportPath}}{{end}}", package]
            step.update(total=sum(map(bool, tasks.run(stale, cwd=module, env=ENVIRONMENT))), note="packages")
            argv: list[str | Path] = ["go", "build", *FLAGS, "-v", f"-ldflags={link}", "-o", output, package]
            tasks.run(argv, cwd=module, env=ENVIRONMENT, on_line=lambda line: _count(line, step))
    except Failed as failure:
        raise failure.as_error(f"Building {what} failed.", _remedy(failure.output)) from failure


def _count(line: str, step: Step) -> None:
    # `go build -v` names each package as it is compiled; complaints of the compiler start with "#" or a file name.
    if line and " " not in line and not line.startswith("#"):
        step.done += 1


def _remedy(output: list[str]) -> str:
    text = "\n".join(output)
    if any(sign in text for sign in ("dial tcp", "no such host", "i/o timeout", "connection refused", "TLS handshake")):
        proxy = os.environ.get("GOPROXY", "the default Go module registry")
        return f"Check that this machine reaches {proxy} and run the same command again; it goes on from there."
    if "requires go >=" in text:
        return INSTALL
    return "Run the same command again; it goes on from there."


def module_directory(module: Path, path: str, tasks: Tasks) -> Path:
    """Where Go keeps the sources of a dependency."""
    return Path(tasks.run(["go", "list", "-m", "-f={{.Dir}}", path], cwd=module, env=ENVIRONMENT)[-1])
