"""A Slurm cluster with users: accounting, login pods, a directory with the users alice and bob, shared homes."""

import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import yaml

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import helm, releases
from kubeslurm.cli.up.installation import Installation
from kubeslurm.cli.up.login import SshAccess
from kubeslurm.local.host import cache
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks
from kubeslurm.local.images import builder, store
from kubeslurm.local.sources import SOURCES
from tests.support.kubernetes import Kubernetes, run
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for

NAMESPACE = "site"
EXAMPLE = SOURCES / "examples" / "login-ldap"
# A hash of what the images are made from: under one fixed tag a kept cluster would go on with stale ones.
TAG = cache.digest(*(SOURCES / "images" / name for name in ("slurm", "openldap")))[:12]
ACCOUNTING = "accountings.slinky.slurm.net"
LOGINSET = "loginsets.slinky.slurm.net"
LOGIN = "slurm-login-main"
ADMINS = "slurm-login-admins"
PATIENCE = 180  # seconds for one command of a user
SLOWLY = 300  # seconds for what waits for databases and kubelets, which look again every minute or so
NODES = 3
MARIADB = ("mariadb", "--no-defaults", "--user=mysql", "--socket=/run/mysqld/mysqld.sock", "--skip-column-names")


class Records(Slurm):
    """A cluster that keeps records of its jobs."""

    def recorded(self, job: int) -> dict[str, str]:
        """A job as accounting knows it; empty when it does not."""
        fields = ("User", "Account", "State", "End", "ExitCode")
        asked = f"--format={','.join(f'{field}%30' for field in fields)}"
        text = self.run("sacct", "--allocations", "--noheader", "--parsable2", f"--jobs={job}", asked, check=False)
        lines = text.strip().splitlines()
        return dict(zip(fields, lines[0].split("|"), strict=True)) if lines else {}

    def clusters(self) -> list[str]:
        """The clusters that accounting knows."""
        return self.run("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster").split()

    def wait_until_recorded(self, job: int, state: str = "COMPLETED", *, within: float = SLOWLY) -> dict[str, str]:
        """A job as accounting knows it, once it is there in this state."""

        def found() -> dict[str, str]:
            seen = self.recorded(job)
            return seen if seen.get("State") == state else {}

        return wait_for(f"job {job} in accounting as {state}", found, within=within, every=0.5)

    def wait_for_condition(self, kind: str, name: str, type_: str, reason: str, *, within: float = SLOWLY) -> str:
        """The message of a condition, once it has this reason."""

        def message() -> str:
            found = self.conditions(kind, name).get(type_, {})
            return found.get("message", "") if found.get("reason") == reason else ""

        return wait_for(f"{type_} of {kind} {name} for {reason}", message, within=within, every=0.5)

    def database(self, statement: str) -> str:
        """What the database server answers its administrator."""
        return self.exec(f"{self.name}-mariadb-0", "", *MARIADB, f"--execute={statement}")

    @contextmanager
    def reading(self, table: str) -> Iterator[None]:
        """Somebody reads a table and has not finished: whoever wants to change its columns has to wait."""
        inside = ("exec", "--stdin", f"{self.name}-mariadb-0", "--", *MARIADB, "--unbuffered")
        argv = ["timeout", str(2 * SLOWLY), *self.cluster.kubectl_command(f"--namespace={self.namespace}", *inside)]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None
            print(f"LOCK TABLES {table} READ; SELECT 'locked';", file=reader.stdin, flush=True)
            assert reader.stdout.readline().strip() == "locked", f"{table} cannot be read"
            try:
                yield
            finally:
                reader.stdin.close()

    def records_well(self) -> bool:
        """Whether accounting says that it works, by the wish of now."""
        found = self.get(ACCOUNTING, self.name)
        status = found.get("status", {})
        said = {each["type"]: each["status"] for each in status.get("conditions", [])}
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        return bool(current and said.get("Ready") == "True" and said.get("Degraded") == "False")


class Site(Records):
    """The cluster, with what users do on it."""

    def __init__(self, product: Installation, cluster: Kubernetes, scratch: Path) -> None:
        super().__init__(cluster, NAMESPACE)
        self.product = product
        self.scratch = scratch
        self.admin_ssh = SshAccess(scratch / "admins")

    def bring_up(self) -> None:
        """Builds what is missing and installs it all."""
        with Progress() as progress, ThreadPoolExecutor(max_workers=2) as pool:
            sources = {"openldap": ("openldap", None), "slurmd-ssh": ("slurm", "slurmd-ssh")}
            list(pool.map(lambda name: self._image(progress, name, *sources[name]), sources))
        self.cluster.kubectl("create", "namespace", NAMESPACE, check=False)
        for file in ("home.yaml", "directory.yaml"):
            text = (EXAMPLE / file).read_text().replace("ghcr.io/kubeslurm/openldap:26.05", f"localhost/openldap:{TAG}")
            self.kubectl("apply", "--filename=-", stdin=text)
        values = releases.merge(self._example(), self._additions())
        helm.install(self.product.access, helm.Release("slurm", NAMESPACE, SOURCES / "charts/slurm", values))
        self.wait_until_idle(NODES, within=SLOWLY)
        wait_for("the login pods", lambda: self.ready_logins() == 2 and self.ready_logins(ADMINS) == 1, within=SLOWLY)

    def ssh(self, user: str, command: str, *, pod: str = "", check: bool = True) -> str:
        """What a command of a user says in a login pod, after logging in with a password."""
        done = self._logged_in(self.ssh_command(user, pod or self.login_pods()[0]), command)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def refusal(self, user: str, *, pod: str = "", password: str = "") -> str:
        """What a user who is not let in is told; empty for one who is."""
        done = self._logged_in(self.ssh_command(user, pod or self.login_pods()[0], password), "true")
        return done.stderr if done.returncode else ""

    def _logged_in(self, ssh: list[str], command: str) -> "subprocess.CompletedProcess[str]":
        return run(["timeout", str(PATIENCE), *ssh, command])

    def ssh_command(self, user: str, pod: str, password: str = "") -> list[str]:
        """The beginning of a command line that logs a user in, from inside the cluster's network."""
        address = self.get("pod", pod)["status"]["podIP"]
        secret = password or f"{user}-secret"
        ask = self.scratch / f"ask-{secret}"
        ask.write_text(f"#!/bin/sh\necho {secret}\n")
        ask.chmod(0o700)
        known = self.scratch / f"known-{pod}"
        options = [f"-oUserKnownHostsFile={known}", "-oStrictHostKeyChecking=no"]
        options += ["-oNumberOfPasswordPrompts=1", "-oConnectTimeout=30"]
        key = (f"-i{self.admin_ssh.path}/id_ed25519", "-oBatchMode=yes") if user == "root" else ()
        init = self.cluster.home.init()
        assert init is not None, "the cluster is not running"
        inside = ["nsenter", f"--target={init.pid}", "--net", "--", "env", f"SSH_ASKPASS={ask}"]
        return [*inside, "SSH_ASKPASS_REQUIRE=force", "ssh", *options, *key, f"{user}@{address}"]

    def submit_as(self, user: str, script: str, *options: str) -> int:
        """The id of a new batch job of a user, sent from a login pod."""
        words = " ".join(shlex.quote(word) for word in ("sbatch", "--parsable", *options, f"--wrap={script}"))
        return int(self.ssh(user, words).strip())

    def login_pods(self, loginset: str = LOGIN) -> list[str]:
        labels = f"app.kubernetes.io/name=login,app.kubernetes.io/instance={loginset}"
        found = self.items("pods", selector=labels)
        return [pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def ready_logins(self, loginset: str = LOGIN) -> int:
        found = self.find(LOGINSET, loginset) or {}
        count: int = found.get("status", {}).get("readyReplicas", 0)
        return count

    def _image(self, progress: Progress, name: str, folder: str, target: str | None) -> None:
        spec = builder.BuildSpec(name, TAG, SOURCES / "images" / folder, target=target)
        image = builder.build(spec, tasks=Tasks(), progress=progress)
        store.push(image, self.cluster.registry, ca=self.cluster.ca)

    def _example(self) -> Tree:
        """The values of the example, with images and limits for this machine."""
        example: Tree = yaml.safe_load((EXAMPLE / "values.yaml").read_text())
        small = releases.slurm(self.product.tags, {}).values
        return releases.merge(example, {key: value for key, value in small.items() if key != "nodesets"})

    def _additions(self) -> Tree:
        """Accounting, login pods for administrators, and a worker that users may log into."""
        home = {"name": "home", "persistentVolumeClaim": {"claimName": "home"}}
        worker = {
            "replicas": 1,
            "oversubscribeNode": True,
            "ssh": {"enabled": True},
            "partition": {"enabled": True, "config": "MaxTime=UNLIMITED"},
            "slurmd": {
                "image": f"localhost/slurmd-ssh:{TAG}",
                "volumeMounts": [{"name": "home", "mountPath": "/home"}],
            },
            "podSpec": {"volumes": [home]},
        }
        admins = {"rootSshAuthorizedKeys": self.admin_ssh.authorized_keys(), "service": {"spec": {"type": "ClusterIP"}}}
        return {
            "accounting": {"enabled": True, "mariadb": {"enabled": True}},
            "loginsets": {"admins": admins},
            "nodesets": {"ssh": worker, "cpu": {"oversubscribeNode": True}},
            # Workers of this partition know no user: only the other one has a directory.
            "partitions": {"all": {"enabled": True, "nodesets": ["cpu"]}},
        }
