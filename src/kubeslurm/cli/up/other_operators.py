"""Finds other operators of the same API on a cluster, before we install ours."""

from datetime import UTC, datetime

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.releases import OPERATOR_NAMESPACE
from kubeslurm.local.errors import LocalError

LEASE = "slurm-operator"
ACTIVE_SECONDS = 60


def refuse(access: Access, ours: bool) -> None:
    """Raise if another operator is active: two operators would delete each other's pods.

    `ours` says whether our operator is installed; its own Lease does not count then.
    """
    leases = access.get_json("get", "leases", "--all-namespaces", f"--field-selector=metadata.name={LEASE}")["items"]
    for lease in leases:
        namespace = lease["metadata"]["namespace"]
        if is_active(lease, datetime.now(UTC)) and not (ours and namespace == OPERATOR_NAMESPACE):
            raise LocalError(
                f"Another slurm-operator is active on this cluster, in the namespace {namespace}.",
                "Uninstall it first: ours takes over its clusters as they run.",
            )


def is_active(lease: Tree, now: datetime) -> bool:
    """Whether the holder of the Lease renewed it recently."""
    renewed = lease.get("spec", {}).get("renewTime")
    holder = lease.get("spec", {}).get("holderIdentity")
    if not renewed or not holder:
        return False
    return (now - datetime.fromisoformat(renewed)).total_seconds() < ACTIVE_SECONDS
