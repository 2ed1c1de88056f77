"""Workers as that operator makes them: pods of its own, a revision, and what they share."""

from tests.support.predecessor.chart import WORKERS
from tests.support.predecessor.parts import (
    CHART_LABELS,
    NAME,
    NODESET,
    Parts,
    Tree,
    etc,
    labels_of,
    memory,
    obj,
    secret_file,
)

REVISION = "7f6d5c4b88"
PRE_STOP = "scontrol update nodename=$(hostname) state=down reason='slurm-operator: Pod is terminating';"


class Workers(Parts):
    """The objects of a NodeSet."""

    def objects(self, owner: Tree, shared: Tree) -> list[Tree]:
        """For the NodeSet as the owner that controls them, and as one that does not."""
        selected = {"app.kubernetes.io/name": "slurmd", "slinky.slurm.net/cluster": NAME}
        port = {"name": "slurmd", "port": 6818, "targetPort": "slurmd"}
        headless = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selected, "ports": [port]}
        protected = {"nodeset.slinky.slurm.net/pod-protect": "true", "slinky.slurm.net/cluster": NAME}
        budget = {"maxUnavailable": 0, "selector": {"matchLabels": protected}}
        history = obj(
            "apps/v1", "ControllerRevision", f"{NODESET}-{REVISION}",
            CHART_LABELS | {"controller.kubernetes.io/hash": REVISION}, owner,
        )  # fmt: skip
        return [
            obj("v1", "Service", f"slurm-workers-{NAME}", {}, shared) | {"spec": headless},
            obj("policy/v1", "PodDisruptionBudget", f"slurm-workers-pdb-{NAME}", {}, shared) | {"spec": budget},
            history | {"revision": 1, "data": self._revision()},
            *(self._worker(number, owner) for number in range(WORKERS)),
        ]

    def _revision(self) -> Tree:
        """As Go writes it: with empty values, and the marks of a patch."""
        replace = {"$patch": "replace", "name": ""}
        slurmd, logfile = self.slurmd() | replace, self.image("slurmctld") | replace
        spec = {"hostname": "cpu-", "containers": None, "nodeSelector": {"kubernetes.io/os": "linux"}}
        template = {"$patch": "replace", "metadata": {"labels": CHART_LABELS}, "spec": spec}
        parts = {"ordinalPadding": 0, "oversubscribeNode": False, "template": template}
        return {"spec": parts | {"slurmd": slurmd, "logfile": logfile}}

    def _worker(self, number: int, owner: Tree) -> Tree:
        name, hostname, subdomain = f"{NODESET}-{number}", f"cpu-{number}", f"slurm-workers-{NAME}"
        labels = {
            **CHART_LABELS,
            **labels_of("slurmd", NODESET, "worker"),
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
        pod = obj("v1", "Pod", name, labels, owner | {"annotations": annotations, "generateName": f"{NODESET}-"})
        key = {"defaultMode": 0o600, "sources": [secret_file("old-auth-slurm", "slurm.key")]}
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
                "initContainers": [self.logfile("/var/log/slurm/slurmd.log")],
                "containers": [self._slurmd_container()],
                "volumes": [{"name": "slurm-etc", "projected": key}, memory("slurm-logfile")],
            }
        }

    def _slurmd_container(self) -> Tree:
        live = {"httpGet": {"path": "/livez", "port": "slurmd"}, "failureThreshold": 6, "periodSeconds": 10}
        topology = {"fieldRef": {"fieldPath": "metadata.annotations['topology.slinky.slurm.net/spec']"}}
        server = f"old-controller.{self.namespace}:6817"
        capabilities = {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]}
        return self.slurmd() | {
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
            "volumeMounts": [etc(), {"name": "slurm-logfile", "mountPath": "/var/log/slurm"}],
        }
