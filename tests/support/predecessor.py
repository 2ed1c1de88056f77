"""A Slurm cluster as Slinky's operator, release 1.2.1, leaves it behind: its objects, its field manager, its pods.

The images are ours, because the contract between operator and images is the same.
"""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from kubeslurm.local.cluster import Cluster
from tests.support.slurm import Slurm

Tree = dict[str, Any]
NAME = "old"
NODESET = f"{NAME}-worker-cpu"
REVISION = "7f6d5c4b88"
# The name under which that operator's binary writes.
MANAGER = "manager"
WORKERS = 2
CHART_LABELS = {
    "app.kubernetes.io/managed-by": "Helm",
    "app.kubernetes.io/part-of": "slurm",
    "app.kubernetes.io/version": "26.05",
    "helm.sh/chart": "slurm-1.2.1",
}

EXTRA_CONF = """\
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED"""

# What slurmctld needs to take part in that cluster; the order of the lines means nothing to it.
SLURM_CONF = f"""\
# Who and where
ClusterName=$NAMESPACE_old
SlurmctldHost=old-controller-0(old-controller.$NAMESPACE)
SlurmUser=slurm
SlurmdUser=root
SlurmctldPort=6817
SlurmdPort=6818

# Workers register themselves and fetch this file
SlurmctldParameters=enable_configless,reconfig_on_restart
MaxNodeCount=1024
NodeSet=cpu Feature=cpu

# Keys
AuthType=auth/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
CredType=cred/slurm

# Files
StateSaveLocation=/var/spool/slurmctld/$NAMESPACE_old
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmSchedLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log

AccountingStorageType=accounting_storage/none
{EXTRA_CONF}
"""

LOG_SIDECAR = (
    'mkdir -p "$(dirname "$SOCKET")"; rm -f "$SOCKET"; mkfifo -m 777 "$SOCKET"; while :; do cat "$SOCKET"; done'
)
RECONFIGURE = """\
sum() { find /etc/slurm -path '*/..*' -prune -o -type f -print -o -type l -print | sort | xargs sha256sum | sha256sum; }
old=$(sum)
while :; do
  sleep 5
  new=$(sum)
  [ "$new" = "$old" ] || { until scontrol reconfigure; do sleep 2; done; old=$new; }
done
"""
PRE_STOP = "scontrol update nodename=$(hostname) state=down reason='slurm-operator: Pod is terminating';"


class Predecessor(Slurm):
    """The cluster, in a namespace of its own."""

    def __init__(self, cluster: Cluster, namespace: str, images: Mapping[str, str]) -> None:
        super().__init__(cluster, namespace, NAME)
        self.images = {name: f"localhost/{name}:{tag}" for name, tag in images.items()}

    def install(self) -> None:
        """What its chart and then its operator would have made."""
        self.cluster.kubectl("create", "namespace", self.namespace)
        for tree in (*self._keys(), self._config_extra(), self._controller(), self._restapi(), self._nodeset()):
            self._create(tree, "helm")
        for tree in (*self._control_plane(), *self._workers()):
            self._create(tree, MANAGER)
        selector = ",".join(f"{key}={value}" for key, value in _selector("slurmd", NODESET).items())
        counts = {"replicas": WORKERS, "updatedReplicas": WORKERS, "readyReplicas": WORKERS}
        status = json.dumps({"status": {"nodeSetHash": REVISION, "selector": selector} | counts})
        self.kubectl(
            "patch", "nodesets.slinky.slurm.net", NODESET, "--subresource=status", "--type=merge", f"--patch={status}",
            f"--field-manager={MANAGER}",
        )  # fmt: skip

    def _create(self, tree: Tree, manager: str) -> None:
        self.kubectl("create", f"--field-manager={manager}", "--filename=-", stdin=yaml.safe_dump(tree))

    def _keys(self) -> list[Tree]:
        names = (("slurm", "k" * 1024), ("jwt", "j" * 1024))
        return [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"old-auth-{name}", "labels": CHART_LABELS}}
            | {"type": "Opaque", "immutable": True, "stringData": {f"{name}.key": value}}
            for name, value in names
        ]

    def _config_extra(self) -> Tree:
        data = {"cgroup.conf": "CgroupPlugin=disabled\n"}
        return _object("v1", "ConfigMap", "old-config-extra", CHART_LABELS) | {"data": data}

    def _controller(self) -> Tree:
        spec = {
            "slurmKeyRef": {"name": "old-auth-slurm", "key": "slurm.key"},
            "jwtKeyRef": {"name": "old-auth-jwt", "key": "jwt.key"},
            "slurmctld": self._image("slurmctld"),
            "reconfigure": self._image("slurmctld"),
            "logfile": self._image("slurmctld"),
            "inplaceReconfigure": True,
            "extraConf": EXTRA_CONF,
            "configFileRefs": [{"name": "old-config-extra"}],
            "persistence": {"enabled": True, "accessModes": ["ReadWriteOnce"]}
            | {"resources": {"requests": {"storage": "4Gi"}}},
            "template": _template({}),
            "service": {"metadata": {}, "spec": {}},
        }
        return self._ours("Controller", NAME, spec)

    def _restapi(self) -> Tree:
        spec = {
            "controllerRef": {"name": NAME},
            "replicas": 1,
            "slurmrestd": self._image("slurmrestd"),
            "template": _template({}),
            "service": {"metadata": {}, "spec": {}},
        }
        return self._ours("RestApi", NAME, spec)

    def _nodeset(self) -> Tree:
        spec = {
            "controllerRef": {"name": NAME},
            "scalingMode": "StatefulSet",
            "replicas": WORKERS,
            "slurmd": self._slurmd(),
            "logfile": self._image("slurmctld"),
            "oversubscribeNode": False,
            "ordinalPadding": 0,
            "workloadDisruptionProtection": True,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
            "template": _template({"hostname": "cpu-"}),
        }
        return self._ours("NodeSet", NODESET, spec)

    def _ours(self, kind: str, name: str, spec: Tree) -> Tree:
        return _object("slinky.slurm.net/v1beta1", kind, name, CHART_LABELS) | {"spec": spec}

    def _image(self, name: str) -> Tree:
        return {"image": self.images[name], "imagePullPolicy": "IfNotPresent", "resources": {}}

    def _slurmd(self) -> Tree:
        return self._image("slurmd") | {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}

    def _owner(self, kind: str, name: str, *, controls: bool = True) -> Tree:
        uid = self.get(f"{kind.lower()}s.slinky.slurm.net", name)["metadata"]["uid"]
        owner = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "name": name, "uid": uid}
        return {"ownerReferences": [owner | {"blockOwnerDeletion": True} | ({"controller": True} if controls else {})]}

    def _text(self, text: str) -> str:
        return text.replace("$NAMESPACE", self.namespace)

    def _control_plane(self) -> list[Tree]:
        owner, rest = self._owner("Controller", NAME), self._owner("RestApi", NAME)
        ctld, restd = _labels("slurmctld", NAME, "controller"), _labels("slurmrestd", NAME, "restapi")
        config = {"slurm.conf": self._text(SLURM_CONF)}
        return [
            _object("v1", "Service", "old-controller", ctld | CHART_LABELS, owner)
            | {"spec": _service("slurmctld", NAME, 6817)},
            _object("v1", "ConfigMap", "old-config", ctld | CHART_LABELS, owner) | {"immutable": False, "data": config},
            _object("apps/v1", "StatefulSet", "old-controller", ctld | CHART_LABELS, owner)
            | {"spec": self._slurmctld_spec(ctld)},
            _object("v1", "Service", "old-restapi", restd, rest) | {"spec": _service("slurmrestd", NAME, 6820)},
            _object("apps/v1", "Deployment", "old-restapi", restd | CHART_LABELS, rest)
            | {"spec": self._slurmrestd_spec(restd)},
        ]

    def _slurmctld_spec(self, labels: Tree) -> Tree:
        hashes = {f"slinky.slurm.net/{key}-key-hash": key * 8 for key in ("slurm", "jwt")}
        storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}}
        sources = [
            {"configMap": {"name": "old-config"}},
            _secret_file("old-auth-slurm", "slurm.key"),
            _secret_file("old-auth-jwt", "jwt.key"),
            {"configMap": {"name": "old-config-extra"}},
        ]
        pod = {
            "automountServiceAccountToken": False,
            "securityContext": _nonroot(401) | {"fsGroup": 401},
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "initContainers": [self._reconfigure(), self._logfile("/var/log/slurm/slurmctld.log")],
            "containers": [self._slurmctld()],
            "volumes": [
                {"name": "slurm-etc", "projected": {"defaultMode": 0o610, "sources": sources}},
                _memory("slurm-logfile"),
                _memory("run"),
                {"name": "slurm-authsocket", "emptyDir": {}},
            ],
        }
        annotations = hashes | {"kubectl.kubernetes.io/default-container": "slurmctld"}
        return {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "podManagementPolicy": "Parallel",
            "serviceName": "old-controller",
            "selector": {"matchLabels": _selector("slurmctld", NAME)},
            "template": {"metadata": {"labels": labels | CHART_LABELS, "annotations": annotations}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": "statesave"}, "spec": storage}],
        }

    def _slurmctld(self) -> Tree:
        live = {"httpGet": {"path": "/livez", "port": "slurmctld"}, "failureThreshold": 6, "periodSeconds": 10}
        mounts = {
            "/run": "run",
            f"/var/spool/slurmctld/{self.namespace}_old": "statesave",
            "/run/slurmctld": "slurm-authsocket",
            "/var/log/slurm": "slurm-logfile",
        }
        return self._image("slurmctld") | {
            "name": "slurmctld",
            "ports": [{"name": "slurmctld", "containerPort": 6817}],
            "startupProbe": live,
            "livenessProbe": live,
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "slurmctld"}},
            "securityContext": _nonroot(401),
            "volumeMounts": [_etc(), *({"name": name, "mountPath": path} for path, name in mounts.items())],
        }

    def _reconfigure(self) -> Tree:
        return self._image("slurmctld") | {
            "name": "reconfigure",
            "restartPolicy": "Always",
            "command": ["tini", "-g", "--", "bash", "-c", RECONFIGURE],
            "volumeMounts": [
                _etc(),
                {"name": "slurm-authsocket", "mountPath": "/run/slurmctld", "readOnly": True},
            ],
        }

    def _logfile(self, path: str) -> Tree:
        return self._image("slurmctld") | {
            "name": "logfile",
            "restartPolicy": "Always",
            "command": ["sh", "-c", LOG_SIDECAR],
            "env": [{"name": "SOCKET", "value": path}],
            "volumeMounts": [{"name": "slurm-logfile", "mountPath": "/var/log/slurm"}],
        }

    def _slurmrestd_spec(self, labels: Tree) -> Tree:
        probe = {"tcpSocket": {"port": 6820}}
        slow = probe | {"failureThreshold": 6, "periodSeconds": 10}
        file = {"configMap": {"name": "old-config", "items": [{"key": "slurm.conf", "path": "slurm.conf"}]}}
        sources = [file, _secret_file("old-auth-slurm", "slurm.key")]
        container = self._image("slurmrestd") | {
            "name": "slurmrestd",
            "args": ["-s", "openapi/slurmctld", "0.0.0.0:6820"],
            "env": [
                {"name": "SLURM_JWT", "value": "daemon"},
                {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_files,disable_unshare_sysv"},
            ],
            "ports": [{"name": "slurmrestd", "containerPort": 6820}],
            "startupProbe": slow,
            "livenessProbe": slow,
            "readinessProbe": probe,
            "securityContext": _nonroot(65534),
            "volumeMounts": [_etc()],
        }
        pod = {
            "automountServiceAccountToken": False,
            "securityContext": _nonroot(65534) | {"fsGroup": 65534},
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "containers": [container],
            "volumes": [{"name": "slurm-etc", "projected": {"defaultMode": 0o600, "sources": sources}}],
        }
        annotations = {"kubectl.kubernetes.io/default-container": "slurmrestd"}
        return {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": _selector("slurmrestd", NAME)},
            "template": {"metadata": {"labels": labels | CHART_LABELS, "annotations": annotations}, "spec": pod},
        }

    def _workers(self) -> list[Tree]:
        owner, shared = self._owner("NodeSet", NODESET), self._owner("NodeSet", NODESET, controls=False)
        selector = {"app.kubernetes.io/name": "slurmd", "slinky.slurm.net/cluster": NAME}
        port = {"name": "slurmd", "port": 6818, "targetPort": "slurmd"}
        service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector, "ports": [port]}
        protected = {"nodeset.slinky.slurm.net/pod-protect": "true", "slinky.slurm.net/cluster": NAME}
        budget = {"maxUnavailable": 0, "selector": {"matchLabels": protected}}
        history = _object(
            "apps/v1", "ControllerRevision", f"{NODESET}-{REVISION}",
            CHART_LABELS | {"controller.kubernetes.io/hash": REVISION}, owner,
        )  # fmt: skip
        return [
            _object("v1", "Service", f"slurm-workers-{NAME}", {}, shared) | {"spec": service},
            _object("policy/v1", "PodDisruptionBudget", f"slurm-workers-pdb-{NAME}", {}, shared) | {"spec": budget},
            history | {"revision": 1, "data": self._revision()},
            *(self._worker(number, owner) for number in range(WORKERS)),
        ]

    def _revision(self) -> Tree:
        """As Go writes it: with empty values, and the marks of a patch."""
        replace = {"$patch": "replace", "name": ""}
        slurmd, logfile = self._slurmd() | replace, self._image("slurmctld") | replace
        spec = {"hostname": "cpu-", "containers": None, "nodeSelector": {"kubernetes.io/os": "linux"}}
        template = {"$patch": "replace", "metadata": {"labels": CHART_LABELS}, "spec": spec}
        parts = {"ordinalPadding": 0, "oversubscribeNode": False, "template": template}
        return {"spec": parts | {"slurmd": slurmd, "logfile": logfile}}

    def _worker(self, number: int, owner: Tree) -> Tree:
        name, hostname, subdomain = f"{NODESET}-{number}", f"cpu-{number}", f"slurm-workers-{NAME}"
        labels = {
            **CHART_LABELS,
            **_labels("slurmd", NODESET, "worker"),
            "slinky.slurm.net/cluster": NAME,
            "controller.kubernetes.io/hash": REVISION,
            "nodeset.slinky.slurm.net/pod-name": name,
            "nodeset.slinky.slurm.net/pod-index": str(number),
            "nodeset.slinky.slurm.net/pod-hostname": hostname,
            "nodeset.slinky.slurm.net/scaling-mode": "StatefulSet",
        }
        annotations = {
            "kubectl.kubernetes.io/default-container": "slurmd",
            "slinky.slurm.net/sshd-conf-hash": "0" * 64,
            "slinky.slurm.net/sssd-conf-hash": "0" * 64,
            "topology.slinky.slurm.net/spec": "",
        }
        alone = {"key": "app.kubernetes.io/name", "operator": "In", "values": ["slurmd"]}
        term = {"labelSelector": {"matchExpressions": [alone]}, "topologyKey": "kubernetes.io/hostname"}
        pod = _object("v1", "Pod", name, labels, owner | {"annotations": annotations, "generateName": f"{NODESET}-"})
        key = {"defaultMode": 0o600, "sources": [_secret_file("old-auth-slurm", "slurm.key")]}
        return pod | {
            "spec": {
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "hostname": hostname,
                "subdomain": subdomain,
                "dnsConfig": {"searches": [f"{subdomain}.{self.namespace}.svc.cluster.local"]},
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "tolerations": [{"key": "nodeset.slinky.slurm.net/worker", "operator": "Equal", "effect": "NoExecute"}],
                "initContainers": [self._logfile("/var/log/slurm/slurmd.log")],
                "containers": [self._slurmd_container()],
                "volumes": [{"name": "slurm-etc", "projected": key}, _memory("slurm-logfile")],
            }
        }

    def _slurmd_container(self) -> Tree:
        live = {"httpGet": {"path": "/livez", "port": "slurmd"}, "failureThreshold": 6, "periodSeconds": 10}
        topology = {"fieldRef": {"fieldPath": "metadata.annotations['topology.slinky.slurm.net/spec']"}}
        server = f"old-controller.{self.namespace}:6817"
        capabilities = {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]}
        return self._slurmd() | {
            "name": "slurmd",
            # The quotes are part of it: that operator's images hand the text to a shell.
            "args": ["-Z", "--conf-server", server, "--conf", "'Features=cpu'"],
            "env": [
                {"name": "POD_TOPOLOGY", "valueFrom": topology},
                {"name": "POD_CPUS", "value": "1"},
                {"name": "POD_MEMORY", "value": "1024"},
            ],
            "ports": [{"name": "slurmd", "containerPort": 6818}],
            "startupProbe": live,
            "livenessProbe": live,
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "slurmd"}},
            "lifecycle": {"preStop": {"exec": {"command": ["/usr/bin/sh", "-c", PRE_STOP]}}},
            "securityContext": {"privileged": True, "capabilities": capabilities},
            "volumeMounts": [_etc(), {"name": "slurm-logfile", "mountPath": "/var/log/slurm"}],
        }


def _object(version: str, kind: str, name: str, labels: Tree, more: Tree | None = None) -> Tree:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels} | (more or {})}


def _template(spec: Tree) -> Tree:
    return {"metadata": {"labels": CHART_LABELS}, "spec": {"nodeSelector": {"kubernetes.io/os": "linux"}} | spec}


def _selector(name: str, instance: str) -> Tree:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": instance}


def _labels(name: str, instance: str, component: str) -> Tree:
    return _selector(name, instance) | {"app.kubernetes.io/component": component}


def _service(name: str, instance: str, port: int) -> Tree:
    return {"selector": _selector(name, instance), "ports": [{"name": name, "port": port, "targetPort": name}]}


def _secret_file(name: str, file: str) -> Tree:
    return {"secret": {"name": name, "items": [{"key": file, "path": file}]}}


def _nonroot(uid: int) -> Tree:
    return {"runAsNonRoot": True, "runAsUser": uid, "runAsGroup": uid}


def _memory(name: str) -> Tree:
    return {"name": name, "emptyDir": {"medium": "Memory"}}


def _etc() -> Tree:
    return {"name": "slurm-etc", "mountPath": "/etc/slurm", "readOnly": True}
