"""Finds other operators of the same API on a cluster, before we install ours beside them."""

from datetime import UTC, datetime

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.helm import Access
from kubeslurm.cli.up.releases import OPERATOR_NAMESPACE
from kubeslurm.local.errors import LocalError

LEASE = "slurm-operator"
ALIVE_SECONDS = 60


def refuse(access: Access, ours: bool) -> None:
    """Raises when somebody else's operator is alive; two of them would delete each other's pods."""
    leases = access.tree("get", "leases", "--all-namespaces", f"--field-selector=metadata.name={LEASE}")["items"]
    for lease in leases:
        namespace = lease["metadata"]["namespace"]
        if is_alive(lease, datetime.now(UTC)) and not (ours and namespace == OPERATOR_NAMESPACE):
            raise LocalError(
                f"Another slurm-operator is at work on this cluster, in the namespace {namespace}.",
                "Uninstall it first: clusters that it made are taken over as they run.",
            )


def is_alive(lease: Tree, now: datetime) -> bool:
    """Whether the holder of the Lease renewed it of late."""
    renewed = lease.get("spec", {}).get("renewTime")
    holder = lease.get("spec", {}).get("holderIdentity")
    if not renewed or not holder:
        return False
    return (now - datetime.fromisoformat(renewed)).total_seconds() < ALIVE_SECONDS
