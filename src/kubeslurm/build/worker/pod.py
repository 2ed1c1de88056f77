"""The worker pod: slurmd on one Kubernetes node, one Slurm node."""

from collections.abc import Mapping

from kubeslurm.api import labels, names, slots, tolerations
from kubeslurm.api.kinds import POD
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.nodeset import NodeSet
from kubeslurm.api.slots import Slot
from kubeslurm.build import scripts
from kubeslurm.build.common import quantity
from kubeslurm.build.common.containers import http_probe, log_sidecar, tcp_port
from kubeslurm.build.common.merge import merge_container, merge_pod_spec
from kubeslurm.build.common.metadata import child_metadata, given, inherited, object_tree
from kubeslurm.build.common.volumes import etc_mount, key_files, memory, projected
from kubeslurm.build.controller.service import conf_server
from kubeslurm.build.worker import ssh
from kubeslurm.build.worker.slurmd_arguments import arguments
from kubeslurm.build.worker.startup import NO_FILE

CAPABILITIES = ("BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE")
# Two names, because images of different releases read different ones.
TOPOLOGY_VARIABLES = ("SLINKY_TOPOLOGY", "POD_TOPOLOGY")
PRE_STOP = scripts.read("slurmd-pre-stop.sh")
_DNS_LABEL = 63


def pod(
    controller: Controller, nodeset: NodeSet, slot: Slot, revision: str, hashes: Mapping[str, str], domain: str
) -> Tree:
    """The pod for one slot; `hashes` are those of `startup.hashes`."""
    spec = _finished(_merged(controller, nodeset, slot, domain), nodeset, slot)
    return object_tree(POD, _metadata(controller, nodeset, slot, revision, hashes), spec=spec)


def _metadata(controller: Controller, nodeset: NodeSet, slot: Slot, revision: str, hashes: Mapping[str, str]) -> Tree:
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
        names.SSHD_CONF_HASH: NO_FILE,
        names.SSSD_CONF_HASH: NO_FILE,
        names.DEFAULT_CONTAINER: names.SLURMD,
        **hashes,
    }
    own = {"labels": own_labels, "annotations": annotations}
    tree = child_metadata(nodeset, name, inherited(nodeset), given(nodeset.spec.template), own)
    tree["generateName"] = f"{nodeset.name}-"
    if not name:
        del tree["name"]
    return tree


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
        "initContainers": [_log_sidecar(nodeset)],
        "containers": [_slurmd(controller, nodeset, user, slot)],
        "volumes": _volumes(controller, nodeset),
    }
    return merge_pod_spec(base, user)


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
        "tolerations": tolerations.of_workers(nodeset),
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
    ports = [tcp_port(names.SLURMD, names.SLURMD_PORT)]
    mounts = [etc_mount(), {"name": names.VOLUME_LOGFILE, "mountPath": names.LOG_DIR}]
    if ssh.enabled(nodeset):
        ports.append(tcp_port("ssh", names.SSH_PORT))
        mounts += ssh.mounts()
    base: Tree = {
        "name": names.SLURMD,
        "args": _arguments(controller, nodeset, slot),
        "env": _environment(nodeset, template, slot),
        "ports": ports,
        "volumeMounts": mounts,
        "securityContext": {"privileged": True, "capabilities": {"add": list(CAPABILITIES)}},
        "lifecycle": {"preStop": {"exec": {"command": ["/usr/bin/sh", "-c", PRE_STOP]}}},
        # slurmd registers within a tenth of a second; a machine under load may take a minute.
        "startupProbe": http_probe("/livez", names.SLURMD, period=1, failures=120),
        "readinessProbe": http_probe("/readyz", names.SLURMD, period=5, failures=3) | {"timeoutSeconds": 3},
        # Restarting slurmd's container ends its jobs, so a slow machine gets two minutes.
        "livenessProbe": http_probe("/livez", names.SLURMD, period=10, failures=12) | {"timeoutSeconds": 5},
    }
    return merge_container(base, nodeset.spec.slurmd or {})


def _arguments(controller: Controller, nodeset: NodeSet, slot: Slot) -> list[str]:
    found = arguments(conf_server(controller), nodeset.slurm_name, nodeset.spec.extraConf)
    if slot.ordinal is None or slots.uses_host_network(nodeset):
        # The node is named after a machine. If the machine fails at once, nothing else says whose node it was.
        found += ["--extra", names.slurm_node_owner(nodeset.metadata.uid)]
    return found


def _environment(nodeset: NodeSet, template: Tree, slot: Slot) -> list[Tree]:
    field = f"metadata.annotations['{names.TOPOLOGY_SPEC}']"
    variables: list[Tree] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}} for name in TOPOLOGY_VARIABLES
    ]
    limits = _limits(template) | _limits(nodeset.spec.slurmd or {})
    variables.append({"name": "POD_CPUS", "value": str(quantity.cores(limits.get("cpu", 0)))})
    variables.append({"name": "POD_MEMORY", "value": str(quantity.mebibytes(limits.get("memory", 0)))})
    if name := _node_name(nodeset, template, slot):
        variables.append({"name": "SLURMD_NODENAME"} | name)
    return variables


def _node_name(nodeset: NodeSet, template: Tree, slot: Slot) -> Tree:
    """Where slurmd finds the name of its Slurm node, if the host name that it sees is another one."""
    if slots.uses_host_network(nodeset) and slot.ordinal is not None:
        return {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    foreign = any(template.get(field) for field in ("hostNetwork", "setHostnameAsFQDN", "hostnameOverride"))
    return {"value": slot.hostname} if foreign else {}


def _limits(holder: Tree) -> Tree:
    return dict((holder.get("resources") or {}).get("limits") or {})


def _log_sidecar(nodeset: NodeSet) -> Tree:
    user = nodeset.spec.logfile or {}
    base = log_sidecar(names.SLURMD_LOG, str(user.get("image") or (nodeset.spec.slurmd or {}).get("image") or ""))
    return merge_container(base, user)


def _volumes(controller: Controller, nodeset: NodeSet) -> list[Tree]:
    volumes = [projected(names.VOLUME_ETC, key_files(controller.spec.slurmKeyRef)), memory(names.VOLUME_LOGFILE)]
    settings = ssh.enabled(nodeset)
    return volumes + (ssh.volumes(nodeset, settings) if settings else [])
