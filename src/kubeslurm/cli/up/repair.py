"""Installs a release, upgrades it, or repairs it after objects were deleted or a command was killed."""

import msgspec

from kubeslurm.api.kinds import SLURM_KINDS
from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import deletion, helm, objects, releases
from kubeslurm.cli.up.access import Access
from kubeslurm.cli.up.helm import Record, Release
from kubeslurm.local.host.progress import Progress

# `--for=condition=Established` fails if the CRD is so new that it has no conditions yet.
ESTABLISHED = '--for=jsonpath={.status.conditions[?(@.type=="Established")].status}=True'


class Situation(msgspec.Struct, frozen=True):
    """What is known about the cluster that a release is on."""

    access: Access
    alone: bool  # no other command can be at work on the releases
    settled: bool  # it was not started just now


def ensure(at: Situation, release: Release, record: Record | None, progress: Progress, *, wait: bool = False) -> bool:
    """Bring a release to the desired state; returns False if nothing had to be done."""
    wanted = _wanted(at.access, release, record)
    found = objects.live(at.access, wanted)
    defects = objects.compare(wanted, found, settled=at.settled) if record else []
    if not defects and record and (record.status, record.digest) == (helm.DEPLOYED, release.digest):
        return False
    if defects:
        progress.print(f"{release.name} is repaired: {', '.join(defects)}")
    with progress.step(f"install {release.name}") as step:
        deletion.wait_until_gone(at.access, step, found)
        if record and record.unfinished:
            helm.discard(at.access, release, record, alone=at.alone)
        helm.install(at.access, release, wait=wait)
    return True


def ensure_crds(at: Situation, progress: Progress) -> bool:
    """Bring the CRDs to the desired state, and wait until they are served; returns False if they were."""
    release = releases.crds()
    if not ensure(at, release, helm.records(at.access).get(release.key), progress):
        return False
    at.access.run("wait", ESTABLISHED, "--timeout=60s", *(f"crd/{kind.plural}.{kind.group}" for kind in SLURM_KINDS))
    return True


def _wanted(access: Access, release: Release, record: Record | None) -> list[Tree]:
    """The objects that the release has, or that an earlier installation of it has left behind."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": release.namespace}}
    if record is not None:
        return [namespace, *objects.expected(helm.manifest(access, release), release.namespace)]
    return [namespace, *(deletion.leftovers(access, release) if release.name == releases.SLURM else [])]
