"""Tells the Slurm side which slurmrestd serve a cluster and which key signs our tokens; keyed by Controller."""

from collections.abc import Iterable

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, SECRET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.restapi import RestApi
from kubeslurm.api.views import Pod
from kubeslurm.build.restapi import service_port
from kubeslurm.control import key_change, references
from kubeslurm.control.registration import Context
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.slurm import conf


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
        jwt_key = self._jwt_key(controller, self._keys.get(key))
        if jwt_key is not None:
            self._keys[key] = jwt_key
            self.clusters.update(key, self._servers(restapis), jwt_key, self._name(controller))
        return None

    def _name(self, controller: Controller) -> str:
        """The cluster's name as slurmrestd was told: a line of the user wins over ours."""
        delivered = references.configmap(self.caches, controller.namespace, names.config(controller.name))
        text = delivered.data.get(names.SLURM_CONF, "") if delivered else ""
        return conf.values(conf.parse(text)).get("clustername", "") or controller.cluster_name

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

    def _jwt_key(self, controller: Controller, used: bytes | None) -> bytes | None:
        """The key that slurmctld knows: the one in the Secret, unless that is gone or waits with a new slurm.key.

        An uninstall may delete the Secret first of all, but slurmctld goes on with the key, and draining needs it.
        """
        ref = controller.spec.jwt_ref
        given = references.key_bytes(references.secret(self.caches, controller.namespace, ref), ref) or None
        kept = self.caches.store(SECRET).get(Key(controller.namespace, names.kept_keys(controller.name)))
        copy = references.data_of(kept).get(names.JWT_KEY_FILE) or None
        if key_change.is_pending(self.caches, controller):
            return copy or used or given
        return given or used or copy


def _literal(address: str) -> str:
    """An address as a URL has it: that of IPv6 stands in brackets."""
    return f"[{address}]" if ":" in address else address
