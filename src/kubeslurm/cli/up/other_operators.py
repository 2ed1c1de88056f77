"""Finds other operators of the same API on a cluster, before we install ours."""

from collections.abc import Mapping
from datetime import UTC, datetime

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.releases import OPERATOR, OPERATOR_NAMESPACE
from kubeslurm.local.errors import LocalError

LEASE = "slurm-operator"
ACTIVE_SECONDS = 60


def refuse(access: Access, digests: Mapping[tuple[str, str], str]) -> None:
    """Raise if there is an operator that we did not install: two operators would delete each other's pods.

    `digests` are those of the installed releases. A release of the operator that we did not make may hold the CRDs: to
    remove it, or to upgrade it to a chart without them, would delete every Slurm cluster.
    """
    place = (OPERATOR_NAMESPACE, OPERATOR)
    if place in digests and not digests[place]:
        raise LocalError(
            f"The release {OPERATOR} in the namespace {OPERATOR_NAMESPACE} was not installed by `kubeslurm up`.",
            "Change it with helm. docs/from-slinky.md describes how to take over Slinky's: do not uninstall it.",
        )
    leases = access.get_json("get", "leases", "--all-namespaces", f"--field-selector=metadata.name={LEASE}")["items"]
    for lease in leases:
        namespace = lease["metadata"]["namespace"]
        if is_active(lease, datetime.now(UTC)) and not (place in digests and namespace == OPERATOR_NAMESPACE):
            raise LocalError(
                f"Another slurm-operator is active on this cluster, in the namespace {namespace}.",
                "docs/from-slinky.md describes how to take over its clusters as they run: do not uninstall it.",
            )


def is_active(lease: Tree, now: datetime) -> bool:
    """Whether the holder of the Lease renewed it recently."""
    renewed = lease.get("spec", {}).get("renewTime")
    holder = lease.get("spec", {}).get("holderIdentity")
    if not renewed or not holder:
        return False
    return (now - datetime.fromisoformat(renewed)).total_seconds() < ACTIVE_SECONDS
