"""Applies the workload of an object, with an event when that replaces or takes over pods."""

from kubeslurm.api import names
from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource
from kubeslurm.api.views import Deployment, StatefulSet
from kubeslurm.build.common.adoption import adapted, is_of_another_operator
from kubeslurm.kube.client import Kube
from kubeslurm.report.events import Event, Recorder

FILES = {
    names.SLURM_KEY_HASH: "the slurm key",
    names.JWT_KEY_HASH: "the JWT key",
    names.SLURMDBD_CONF_HASH: "slurmdbd.conf",
    names.SSH_HOST_KEYS_HASH: "the host keys",
    names.SSHD_CONF_HASH: "the configuration of sshd",
    names.SSSD_CONF_HASH: "sssd.conf",
}
REST = "what is read only at the start"


async def keep(
    kube: Kube,
    events: Recorder,
    owner: Resource,
    desired: Tree,
    live: StatefulSet | Deployment | None,
    requested: Tree | None = None,
) -> None:
    """Applies the workload; an event on its owner says what happens to the pods."""
    wanted = adapted(desired, live, requested)
    await kube.apply(wanted)
    if live is None:
        return
    name = f"{wanted['kind']} {live.name}"
    if is_of_another_operator(live):
        events.normal(owner, Event.ADOPTED, f"the pods of {name}, made by another operator, are taken over as they are")
    elif why := replaced(wanted, live):
        events.normal(owner, Event.RESTARTING, f"the pods of {name} are replaced: {why}")


def replaced(wanted: Tree, live: StatefulSet | Deployment) -> str:
    """What has changed that running pods do not read; empty if they stay."""
    before, after = _annotations(live.spec), _annotations(wanted["spec"])
    if names.RESTART_HASH not in before:  # another operator's, with other hashes
        return "another operator made them, and they are to change" if names.RESTART_HASH in after else ""
    changed = [file for name, file in FILES.items() if before.get(name) != after.get(name)]
    # The last hash covers some of the files a second time.
    if not changed and before[names.RESTART_HASH] != after.get(names.RESTART_HASH):
        changed = [REST]
    return f"{', '.join(changed)} changed" if changed else ""


def given(live: StatefulSet | Deployment | None, *annotations: str) -> dict[str, str]:
    """These annotations of the live pods, as far as they have them: what they were started with stays so."""
    found = _annotations(live.spec) if live is not None else {}
    return {name: found[name] for name in annotations if name in found}


def _annotations(spec: Tree) -> dict[str, str]:
    found: dict[str, str] = spec.get("template", {}).get("metadata", {}).get("annotations") or {}
    return found
