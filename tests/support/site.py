"""A Slurm cluster with people on it: accounting, login pods, a directory with the users alice and bob, shared homes."""

import shlex
import subprocess
from pathlib import Path

import yaml

from kubeslurm.api.meta import Tree
from kubeslurm.cli import helm, releases
from kubeslurm.cli.product import Product
from kubeslurm.local import cache, images
from kubeslurm.local.cluster import Cluster
from kubeslurm.local.progress import Progress
from kubeslurm.local.sources import SOURCES
from tests.support.slurm import Slurm, wait_for

NAMESPACE = "people"
EXAMPLE = SOURCES / "examples" / "login-ldap"
# A hash of what the images are made from: under one fixed tag a kept cluster would go on with stale ones.
TAG = cache.digest(*(SOURCES / "images" / name for name in ("slurm", "mariadb", "openldap")))[:12]
ACCOUNTING = "accountings.slinky.slurm.net"
LOGINSET = "loginsets.slinky.slurm.net"
LOGIN = "slurm-login-main"


class Site(Slurm):
    """The cluster, with what users do on it."""

    def __init__(self, product: Product, cluster: Cluster, scratch: Path) -> None:
        super().__init__(cluster, NAMESPACE)
        self.product = product
        self.scratch = scratch

    def bring_up(self) -> None:
        """Builds what is missing and installs it all."""
        with Progress() as progress:
            for name in ("mariadb", "openldap"):
                self._image(progress, name, SOURCES / "images" / name, None)
            for name in ("slurmdbd", "login", "slurmd-ssh"):
                self._image(progress, name, SOURCES / "images/slurm", name)
        self.cluster.kubectl("create", "namespace", NAMESPACE, check=False)
        for file in ("home.yaml", "directory.yaml"):
            text = (EXAMPLE / file).read_text().replace("ghcr.io/kubeslurm/openldap:26.05", f"localhost/openldap:{TAG}")
            self.kubectl("apply", "--filename=-", stdin=text)
        self.install({})
        self.wait_until_idle(2, within=240)
        wait_for("two login pods", lambda: self.ready_logins() == 2, within=240)

    def install(self, extra: Tree) -> None:
        """Installs or upgrades the release with more values."""
        values = releases.merged(self._values(), extra)
        helm.install(self.product.access, helm.Release("slurm", NAMESPACE, SOURCES / "charts/slurm", values))

    def ssh(self, user: str, command: str, *, pod: str = "", check: bool = True) -> str:
        """What a command of a user says in a login pod, after logging in with a password."""
        argv = ["timeout", "90", *self.ssh_command(user, pod or self.login_pods()[0])]
        done = subprocess.run([*argv, command], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def ssh_command(self, user: str, pod: str) -> list[str]:
        """The beginning of a command line that logs a user in, from inside the cluster's network."""
        address = self.get("pod", pod)["status"]["podIP"]
        ask = self.scratch / f"ask-{user}"
        if not ask.exists():
            ask.write_text(f"#!/bin/sh\necho {user}-secret\n")
        ask.chmod(0o700)
        known = self.scratch / f"known-{pod}"
        options = ("-oStrictHostKeyChecking=no", f"-oUserKnownHostsFile={known}", "-oLogLevel=ERROR")
        init = self.cluster.home.init()
        assert init is not None, "the cluster is not running"
        inside = ["nsenter", f"--target={init.pid}", "--net", "--"]
        return [*inside, "env", f"SSH_ASKPASS={ask}", "SSH_ASKPASS_REQUIRE=force", "ssh", *options, f"{user}@{address}"]

    def submit_as(self, user: str, script: str, *options: str) -> int:
        """The id of a new batch job of a user, sent from a login pod."""
        words = " ".join(shlex.quote(word) for word in ("sbatch", "--parsable", *options, f"--wrap={script}"))
        return int(self.ssh(user, words).strip())

    def recorded(self, job: int) -> dict[str, str]:
        """A job as accounting knows it; empty when it does not."""
        fields = ("User", "Account", "State", "End", "ExitCode")
        asked = f"--format={','.join(f'{field}%30' for field in fields)}"
        text = self.run("sacct", "--allocations", "--noheader", "--parsable2", f"--jobs={job}", asked, check=False)
        lines = text.strip().splitlines()
        return dict(zip(fields, lines[0].split("|"), strict=True)) if lines else {}

    def wait_until_recorded(self, job: int, state: str = "COMPLETED", *, within: float = 120.0) -> dict[str, str]:
        """A job as accounting knows it, once it is there in this state."""

        def found() -> dict[str, str]:
            seen = self.recorded(job)
            return seen if seen.get("State") == state else {}

        return wait_for(f"job {job} in accounting as {state}", found, within=within, every=1.0)

    def login_pods(self) -> list[str]:
        found = self.get("pods", "", "--selector=app.kubernetes.io/name=login")["items"]
        return [pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def ready_logins(self) -> int:
        found = self.find(LOGINSET, LOGIN) or {}
        count: int = found.get("status", {}).get("readyReplicas", 0)
        return count

    def wait_for_condition(self, kind: str, name: str, type_: str, reason: str, *, within: float = 150.0) -> str:
        """The message of a condition, once it has this reason."""

        def message() -> str:
            found = self.conditions(kind, name).get(type_, {})
            return found.get("message", "") if found.get("reason") == reason else ""

        return wait_for(f"{type_} of {kind} {name} for {reason}", message, within=within, every=1.0)

    def _image(self, progress: Progress, name: str, context: Path, target: str | None) -> None:
        ref = images.build(name, tag=TAG, context=context, target=target, progress=progress)
        images.push(ref, self.cluster.registry, ca=self.cluster.ca)

    def _values(self) -> Tree:
        example: Tree = yaml.safe_load((EXAMPLE / "values.yaml").read_text())
        base = releases.merged(example, releases.slurm(self.product.tags, {}).values)
        base["nodesets"] = {"cpu": example["nodesets"]["cpu"]}
        image = {name: {"image": f"localhost/{name}:{TAG}"} for name in ("slurmdbd", "mariadb", "login")}
        accounting = {"enabled": True, "slurmdbd": image["slurmdbd"], "mariadb": {"enabled": True, **image["mariadb"]}}
        controller = {"extraConf": "AuthAltParameters=use_jwt_client_ids\nPrologFlags=Contain\n"}
        more = {"accounting": accounting, "loginsetDefaults": {"login": image["login"]}, "controller": controller}
        return releases.merged(base, more)
