"""Tells the Slurm side which slurmrestd serve a cluster and which key signs our tokens; keyed by Controller."""

from collections.abc import Iterable

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, SECRET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.views import Pod
from kubeslurm.build.controller.secret import kept_key
from kubeslurm.build.restapi import service_port
from kubeslurm.control import references, second_owner
from kubeslurm.control.registration import Context
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key


class SlurmClusterReconciler:
    """Keeps the registry of Slurm clusters in line with RestApis, their pods and the keys."""

    def __init__(self, context: Context) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.clusters = context.clusters
        self._keys: dict[Key, bytes] = {}

    async def reconcile(self, key: Key) -> Requeue | None:
        controller = self.caches.store(CONTROLLER).get(key)
        restapis = references.restapis(self.caches, key)
        nodesets = references.holders(self.caches, key)
        if controller is None and restapis and nodesets:
            return None  # forced away, but workers are still to be drained with what is known
        if controller is None or not restapis:
            # What Slurm last said is dropped with it: no reconciler may act on the word of a cluster nobody can ask.
            await self.clusters.remove(key)
            self._keys.pop(key, None)
            return None
        # `helm uninstall` deletes the Secret first of all, but slurmctld goes on with the key, and draining needs it.
        given = self._jwt_key(controller)
        jwt_key = given or self._keys.get(key) or self._kept_key(controller)
        if jwt_key is not None:
            self._keys[key] = jwt_key
            self.clusters.update(key, self._servers(restapis), jwt_key)
        if given is not None and nodesets and not controller.deleting:
            await self.kube.apply(second_owner.added(self.caches, key, kept_key(controller, given)))
        return None

    def _servers(self, restapis: Iterable[RestApi]) -> list[str]:
        """Every ready replica of every RestApi by its own address, then the Services."""
        oldest_first = sorted(restapis, key=lambda each: (str(each.metadata.creationTimestamp), each.name))
        pods = [
            f"http://{_literal(pod.status.podIP)}:{names.SLURMRESTD_PORT}"
            for restapi in oldest_first
            for pod in sorted(self._pods(restapi), key=lambda pod: pod.name)
        ]
        services = [
            f"http://{names.host(names.restapi(restapi.name), restapi.namespace)}:{service_port(restapi)}"
            for restapi in oldest_first
        ]
        return pods or services

    def _pods(self, restapi: RestApi) -> list[Pod]:
        found = references.PODS_BY_RESTAPI.get(self.caches, Key(*restapi.key))
        return [pod for pod in found if pod.ready and not pod.deleting and pod.status.podIP]

    def _jwt_key(self, controller: Controller) -> bytes | None:
        ref = controller.spec.jwt_ref
        return references.key_bytes(references.secret(self.caches, controller.namespace, ref), ref) or None

    def _kept_key(self, controller: Controller) -> bytes | None:
        """Our copy, for a process that started when the original was gone already."""
        kept = self.caches.store(SECRET).get(Key(controller.namespace, names.kept_key(controller.name)))
        return references.data_of(kept).get(names.JWT_KEY_FILE) or None


def _literal(address: str) -> str:
    """An address as a URL has it: that of IPv6 stands in brackets."""
    return f"[{address}]" if ":" in address else address
