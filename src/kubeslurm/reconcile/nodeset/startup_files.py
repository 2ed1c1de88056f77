"""What workers read only when they start, in its present form."""

from kubeslurm.api.kinds import CONTROLLER
from kubeslurm.api.slinky.fragments import SecretKeySelector
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.build.worker import ssh, startup
from kubeslurm.control import key_change, references
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches


def hashes(caches: Caches, nodeset: NodeSet) -> dict[str, str]:
    """Annotation -> hash of the slurm.key, the conf-server and the ssh files that a worker would get today."""
    controller, settings = caches.store(CONTROLLER).get(Key(*nodeset.controller_key)), ssh.enabled(nodeset)
    return startup.hashes(
        controller,
        nodeset,
        slurm_key=_bytes(caches, nodeset.namespace, controller.spec.slurmKeyRef if controller else None),
        sssd_conf=_bytes(caches, nodeset.namespace, settings.sssdConfRef if settings else None),
    )


def key_waits(caches: Caches, nodeset: NodeSet) -> bool:
    """Whether slurmctld has not been given the slurm.key that a worker would get today."""
    controller = caches.store(CONTROLLER).get(Key(*nodeset.controller_key))
    return controller is not None and key_change.is_pending(caches, controller)


def _bytes(caches: Caches, namespace: str, ref: SecretKeySelector | None) -> bytes:
    return references.key_bytes(references.secret(caches, namespace, ref), ref) or b""
