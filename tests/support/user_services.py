"""The reconcilers of accounting and login on an API server in memory; the test says what pods write to their logs."""

from typing import Any

import httpx2

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.accounting.reconciler import AccountingReconciler
from kubeslurm.reconcile.loginset.reconciler import LoginSetReconciler
from tests.support.controlplane import ControlPlane
from tests.support.fake_apiserver import FakeApiServer
from tests.support.fake_storage import Address


class TalkingServer(FakeApiServer):
    """An API server that also serves the logs of pods."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, str] = {}
        self.logs_status = 200

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/log"):
            said, asked = self.said.get(request.url.path.split("/")[-2], ""), request.url.params
            lines = said.splitlines(keepends=True)[-int(asked.get("tailLines", len(said) + 1)) :]
            text = "".join(lines)[: int(asked.get("limitBytes", len(said)))]
            return httpx2.Response(self.logs_status, text=text)
        return await super().__call__(request)


class UserServices(ControlPlane):
    """A cluster with accounting and login."""

    def __init__(self) -> None:
        super().__init__()
        self.talking = TalkingServer()
        self.server = self.talking
        self.connection = self.server.connection()

    async def start(self) -> None:
        await super().start()
        self.accounting = AccountingReconciler(self.context)
        self.login = LoginSetReconciler(self.context)

    async def make_accounting(self, **spec: Any) -> None:
        base = {
            "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
            "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
            "slurmdbd": {"image": "slurmdbd:1"},
            "storageConfig": {
                "host": "db",
                "username": "slurm",
                "passwordKeyRef": {"name": "database", "key": "password"},
            },
        }
        status = self.status("accountings", "a")
        await self.make("Accounting", "a", "accountings", spec=base | spec, status=status)

    async def make_loginset(self, name: str = "l", **spec: Any) -> None:
        base = {
            "controllerRef": {"name": "c"},
            "login": {"image": "login:1"},
            "sssdConfRef": {"name": "sssd", "key": "sssd.conf"},
        }
        await self.make("LoginSet", name, "loginsets", spec=base | spec, status=self.status("loginsets", name))

    async def run_pod(
        self,
        name: str,
        daemon: str,
        instance: str,
        *,
        ready: bool,
        started: bool = False,
        ended: Tree | None = None,
        annotations: dict[str, str] | None = None,
    ) -> None:
        """A pod of a daemon as the kubelet would report it; by default one of ours."""
        state: Tree = {"running": {}}
        status_of = {"name": daemon, "ready": ready, "started": started or ready, "state": state}
        status_of["containerID"] = f"{name}-{ready}"
        if ended is not None:
            status_of["lastState"] = {"terminated": ended}
        labels = {names.LABEL_NAME: daemon, names.LABEL_INSTANCE: instance}
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"phase": "Running", "conditions": [condition], "containerStatuses": [status_of]}
        hashes = {names.RESTART_HASH: "1"} if annotations is None else annotations
        metadata = {"name": name, "namespace": "ns", "labels": labels, "annotations": hashes}
        await self.server.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}, "pods")
        await self.settle()

    async def pass_accounting(self) -> Requeue | None:
        result = await self.accounting.reconcile(Key("ns", "a"))
        await self.settle()
        return result

    async def pass_login(self, name: str = "l") -> Requeue | None:
        result = await self.login.reconcile(Key("ns", name))
        await self.settle()
        return result

    def annotations(self, plural: str, name: str) -> dict[str, str]:
        """The annotations in a workload's pod template."""
        tree = self.server.objects[Address(plural, "ns", name)]
        found: dict[str, str] = tree["spec"]["template"]["metadata"]["annotations"]
        return found
