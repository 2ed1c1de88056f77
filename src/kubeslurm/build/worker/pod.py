"""The worker pod: slurmd on one Kubernetes node, one Slurm node."""

import hashlib

import msgspec

from kubeslurm.api import labels, names, slots
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot
from kubeslurm.build.common import merge, parts, quantity
from kubeslurm.build.worker import slurmd_conf

EMPTY_HASH = hashlib.sha256(b"").hexdigest()
CAPABILITIES = ("BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE")
# Two names, because images of different releases read different ones.
TOPOLOGY_VARIABLES = ("SLINKY_TOPOLOGY", "POD_TOPOLOGY")
# Fences the node before slurmd goes, so that Slurm requeues at once what a user's delete cut off. What an admin gave a
# reason for keeps it, also inside one of ours. None of this may use up the grace period when slurmctld is away.
PRE_STOP = """\
node="${SLURMD_NODENAME:-$(hostname)}"
reason='slurm-operator: Pod is terminating'
shown=$(timeout 5 scontrol --oneliner show node "$node")
given=$(printf %s "$shown" | sed 's/.*Reason=//; s/ \\[[^[]*@[^]]*\\].*//')
case "$shown" in
  *State=*Reason=slurm-operator:*) case "$given" in *' (was: '*) reason=$given ;; esac ;;
  *State=*DRAIN*Reason=* | *State=*DOWN*Reason=*) reason=$given ;;
esac
timeout 10 scontrol update nodename="$node" state=down reason="$reason" || true
"""
# A kubelet that is away must not cost jobs: without a limit Kubernetes would evict the worker after five minutes.
TOLERATIONS: tuple[Tree, ...] = (
    {"key": names.WORKER_TAINT, "operator": "Equal", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    # Shows a drain of Slurm's to others; the worker behind it must be able to come back to its node.
    {"key": names.SLURM_DRAIN, "operator": "Exists", "effect": "NoSchedule"},
)
# As for any DaemonSet: its pods belong on a node however it fares, and a cordoned one gets its worker back, drained.
DAEMON_TOLERATIONS: tuple[Tree, ...] = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoSchedule"}
    for key in ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)
_DNS_LABEL = 63


class Stamps(msgspec.Struct, frozen=True):
    """Digests of what a worker reads once, at its start; it never sees a change. Empty: not known."""

    sshd: str = EMPTY_HASH
    sssd: str = EMPTY_HASH
    slurm_key: str = ""
    restart: str = ""


def pod(controller: Controller, nodeset: NodeSet, slot: Slot, revision: str, stamps: Stamps, domain: str) -> Tree:
    """The pod for one slot."""
    spec = _finished(_merged(controller, nodeset, slot, domain), nodeset, slot)
    return parts.object_tree("v1", "Pod", _metadata(controller, nodeset, slot, revision, stamps), spec=spec)


def tolerations(nodeset: NodeSet) -> list[Tree]:
    """What workers tolerate: the user's own and, unless the user says otherwise about the same taint, ours."""
    template = nodeset.spec.template
    given: list[Tree] = list((template and template.spec and template.spec.get("tolerations")) or ())
    ours = TOLERATIONS + (DAEMON_TOLERATIONS if nodeset.spec.scalingMode == "DaemonSet" else ())
    spoken_for = {(each.get("key"), each.get("effect")) for each in given}
    return given + [each for each in ours if (each["key"], each["effect"]) not in spoken_for]


def conf_server(controller: Controller) -> str:
    """Where slurmd fetches its configuration."""
    external = controller.spec.externalConfig
    if controller.spec.external and external is not None:
        return f"{external.host}:{external.port}"
    port = (controller.spec.service and controller.spec.service.port) or names.SLURMCTLD_PORT
    return f"{names.host(names.controller(controller.name), controller.namespace)}:{port}"


def _metadata(controller: Controller, nodeset: NodeSet, slot: Slot, revision: str, stamps: Stamps) -> Tree:
    name = slots.pod_name(nodeset, slot)
    own_labels = {
        **labels.worker(nodeset.name, controller.name),
        names.LABEL_SCALING_MODE: "StatefulSet" if slot.ordinal is not None else "DaemonSet",
        names.LABEL_REVISION: revision,
    }
    if hostname := slots.slurm_name(nodeset, slot)[:_DNS_LABEL]:
        own_labels[names.LABEL_POD_HOSTNAME] = hostname
    if slot.ordinal is not None:
        own_labels[names.LABEL_POD_INDEX] = slots.ordinal_text(nodeset, slot.ordinal)
        own_labels[names.LABEL_POD_NAME] = name[:_DNS_LABEL]
    annotations = {
        names.SSHD_CONF_HASH: stamps.sshd,
        names.SSSD_CONF_HASH: stamps.sssd,
        names.DEFAULT_CONTAINER: names.SLURMD,
    }
    known = {names.SLURM_KEY_HASH: stamps.slurm_key, names.RESTART_HASH: stamps.restart}
    annotations |= {name: value for name, value in known.items() if value}
    template = nodeset.spec.template
    given = {"labels": template.labels, "annotations": template.annotations} if template else None
    layers = merge.merge_metadata(
        parts.inherited(nodeset.metadata), given, {"labels": own_labels, "annotations": annotations}
    )
    tree = parts.metadata(name, nodeset.metadata, "NodeSet", layers)
    # A second owner: deleting the NodeSet with --cascade=foreground would otherwise delete busy workers unasked.
    tree["ownerReferences"].append(_lasting_owner(controller))
    tree["generateName"] = f"{nodeset.name}-"
    if not name:
        del tree["name"]
    return tree


def _lasting_owner(controller: Controller) -> Tree:
    return parts.owner(controller.metadata, "Controller") | {"controller": False, "blockOwnerDeletion": False}


def _merged(controller: Controller, nodeset: NodeSet, slot: Slot, domain: str) -> Tree:
    template = nodeset.spec.template
    user: Tree = {
        field: value
        for field, value in ((template and template.spec) or {}).items()
        if field not in ("hostname", "tolerations")
    }
    service = names.workers_service(controller.name)
    base: Tree = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "subdomain": service,
        "dnsConfig": {"searches": [names.full_host(service, nodeset.namespace, domain)]},
        "initContainers": [_logfile(nodeset)],
        "containers": [_slurmd(controller, nodeset, user, slot)],
        "volumes": _volumes(controller, nodeset),
    }
    return merge.merge_pod_spec(base, user)


def _finished(spec: Tree, nodeset: NodeSet, slot: Slot) -> Tree:
    """What a user's template adds to but must not replace."""
    claims = [
        {
            "name": claim["metadata"]["name"],
            "persistentVolumeClaim": {
                "claimName": slots.claim_name(nodeset, claim["metadata"]["name"], slot),
            },
        }
        for claim in nodeset.spec.volumeClaimTemplates or ()
    ]
    taken = {claim["name"] for claim in claims}
    finished = spec | {
        "hostname": slot.hostname,
        "tolerations": tolerations(nodeset),
        "volumes": [volume for volume in spec["volumes"] if volume["name"] not in taken] + claims,
    }
    affinity = _affinity(spec.get("affinity") or {}, nodeset, slot)
    return finished | ({"affinity": affinity} if affinity else {})


def _affinity(given: Tree, nodeset: NodeSet, slot: Slot) -> Tree:
    affinity = dict(given)
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if not nodeset.spec.oversubscribeNode:
        anti = dict(affinity.get("podAntiAffinity") or {})
        test = {"key": names.LABEL_NAME, "operator": "In", "values": [names.SLURMD]}
        term = {"labelSelector": {"matchExpressions": [test]}, "topologyKey": "kubernetes.io/hostname"}
        affinity["podAntiAffinity"] = anti | {required: [*(anti.get(required) or ()), term]}
    if slot.node:
        # Alternatives are ORed and the tests of one are ANDed: pinning each keeps the user's own requirements in force.
        node = dict(affinity.get("nodeAffinity") or {})
        terms = (node.get(required) or {}).get("nodeSelectorTerms") or [{}]
        pin = {"key": "metadata.name", "operator": "In", "values": [slot.node]}
        pinned = [term | {"matchFields": [*(term.get("matchFields") or ()), pin]} for term in terms]
        affinity["nodeAffinity"] = node | {required: {"nodeSelectorTerms": pinned}}
    return affinity


def _slurmd(controller: Controller, nodeset: NodeSet, template: Tree, slot: Slot) -> Tree:
    ssh = bool(nodeset.spec.ssh and nodeset.spec.ssh.enabled)
    ports = [{"name": names.SLURMD, "containerPort": names.SLURMD_PORT, "protocol": "TCP"}]
    mounts = [
        {"name": names.VOLUME_ETC, "mountPath": names.ETC_DIR, "readOnly": True},
        {"name": names.VOLUME_LOGFILE, "mountPath": names.LOG_DIR},
    ]
    if ssh:
        ports.append({"name": "ssh", "containerPort": names.SSH_PORT, "protocol": "TCP"})
        mounts += [
            _file(names.VOLUME_SSH_CONFIG, "/etc/ssh", "sshd_config"),
            _file(names.VOLUME_SSSD, "/etc/sssd", "sssd.conf"),
        ]
    base: Tree = {
        "name": names.SLURMD,
        "args": _arguments(controller, nodeset, slot),
        "env": _environment(nodeset, template, slot),
        "ports": ports,
        "volumeMounts": mounts,
        "securityContext": {"privileged": True, "capabilities": {"add": list(CAPABILITIES)}},
        "lifecycle": {"preStop": {"exec": {"command": ["/usr/bin/sh", "-c", PRE_STOP]}}},
        # slurmd registers within a tenth of a second; a machine under load may take a minute.
        "startupProbe": parts.http_probe("/livez", names.SLURMD, period=1, failures=120),
        "readinessProbe": parts.http_probe("/readyz", names.SLURMD, period=5, failures=3) | {"timeoutSeconds": 3},
        # Restarting slurmd's container ends its jobs, so a machine that is merely slow gets two minutes.
        "livenessProbe": parts.http_probe("/livez", names.SLURMD, period=10, failures=12) | {"timeoutSeconds": 5},
    }
    return merge.merge_container(base, nodeset.spec.slurmd or {})


def _arguments(controller: Controller, nodeset: NodeSet, slot: Slot) -> list[str]:
    arguments = slurmd_conf.arguments(conf_server(controller), nodeset.slurm_name, nodeset.spec.extraConf)
    if slot.ordinal is None or slots.uses_host_network(nodeset):
        # The node is named after a machine, which does not tell whose it is should the machine die at once.
        arguments += ["--extra", slurmd_conf.owner_mark(nodeset.metadata.uid)]
    return arguments


def _environment(nodeset: NodeSet, template: Tree, slot: Slot) -> list[Tree]:
    field = f"metadata.annotations['{names.TOPOLOGY_SPEC}']"
    variables: list[Tree] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}} for name in TOPOLOGY_VARIABLES
    ]
    limits = _limits(template) | _limits(nodeset.spec.slurmd or {})
    variables.append({"name": "POD_CPUS", "value": str(quantity.cores(limits.get("cpu", 0)))})
    variables.append({"name": "POD_MEMORY", "value": str(quantity.mebibytes(limits.get("memory", 0)))})
    if slots.uses_host_network(nodeset) and slot.ordinal is not None:
        # The host's own name may be a full one while Slurm knows the node by its Kubernetes name.
        node_name = {"fieldRef": {"fieldPath": "spec.nodeName"}}
        variables.append({"name": "SLURMD_NODENAME", "valueFrom": node_name})
    return variables


def _limits(holder: Tree) -> Tree:
    return dict((holder.get("resources") or {}).get("limits") or {})


def _logfile(nodeset: NodeSet) -> Tree:
    user = nodeset.spec.logfile or {}
    base = parts.logfile(names.SLURMD_LOG, str(user.get("image") or (nodeset.spec.slurmd or {}).get("image") or ""))
    return merge.merge_container(base, user)


def _file(volume: str, directory: str, name: str) -> Tree:
    return {"name": volume, "mountPath": f"{directory}/{name}", "subPath": name, "readOnly": True}


def _volumes(controller: Controller, nodeset: NodeSet) -> list[Tree]:
    key = controller.spec.slurmKeyRef
    sources = [parts.secret_file(key.name, key.key, names.SLURM_KEY_FILE)] if key else []
    volumes = [parts.projected(names.VOLUME_ETC, 0o600, sources), parts.memory(names.VOLUME_LOGFILE)]
    ssh = nodeset.spec.ssh
    if ssh and ssh.enabled:
        config = parts.configmap_file(names.login_ssh_config(nodeset.name), "sshd_config", "sshd_config")
        users = parts.secret_file(ssh.sssdConfRef.name, ssh.sssdConfRef.key, "sssd.conf")
        volumes.append(parts.projected(names.VOLUME_SSH_CONFIG, 0o600, [config]))
        volumes.append(parts.projected(names.VOLUME_SSSD, 0o600, [users]))
    return volumes
