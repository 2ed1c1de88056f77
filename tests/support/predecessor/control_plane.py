"""slurmctld and slurmrestd as that operator makes them."""

from tests.support.predecessor.chart import EXTRA_CONF
from tests.support.predecessor.parts import (
    CHART_LABELS,
    NAME,
    Parts,
    Tree,
    etc,
    labels_of,
    memory,
    nonroot,
    obj,
    secret_file,
    selector,
    service,
)

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
RECONFIGURE = """\
sum() { find /etc/slurm -path '*/..*' -prune -o -type f -print -o -type l -print | sort | xargs sha256sum | sha256sum; }
old=$(sum)
while :; do
  sleep 5
  new=$(sum)
  [ "$new" = "$old" ] || { until scontrol reconfigure; do sleep 2; done; old=$new; }
done
"""


class ControlPlane(Parts):
    """The objects of a Controller and a RestApi."""

    def objects(self, owner: Tree, rest: Tree) -> list[Tree]:
        """For the Controller and the RestApi that own them."""
        ctld, restd = labels_of("slurmctld", NAME, "controller"), labels_of("slurmrestd", NAME, "restapi")
        config = {"slurm.conf": SLURM_CONF.replace("$NAMESPACE", self.namespace)}
        return [
            obj("v1", "Service", "old-controller", ctld | CHART_LABELS, owner)
            | {"spec": service("slurmctld", NAME, 6817)},
            obj("v1", "ConfigMap", "old-config", ctld | CHART_LABELS, owner) | {"immutable": False, "data": config},
            obj("apps/v1", "StatefulSet", "old-controller", ctld | CHART_LABELS, owner)
            | {"spec": self._slurmctld_spec(ctld)},
            obj("v1", "Service", "old-restapi", restd, rest) | {"spec": service("slurmrestd", NAME, 6820)},
            obj("apps/v1", "Deployment", "old-restapi", restd | CHART_LABELS, rest)
            | {"spec": self._slurmrestd_spec(restd)},
        ]

    def _slurmctld_spec(self, labels: Tree) -> Tree:
        hashes = {f"slinky.slurm.net/{key}-key-hash": key * 8 for key in ("slurm", "jwt")}
        storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}}
        sources = [
            {"configMap": {"name": "old-config"}},
            secret_file("old-auth-slurm", "slurm.key"),
            secret_file("old-auth-jwt", "jwt.key"),
            {"configMap": {"name": "old-config-extra"}},
        ]
        pod = {
            "automountServiceAccountToken": False,
            "securityContext": nonroot(401) | {"fsGroup": 401},
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "initContainers": [self._reconfigure(), self.logfile("/var/log/slurm/slurmctld.log")],
            "containers": [self._slurmctld()],
            "volumes": [
                {"name": "slurm-etc", "projected": {"defaultMode": 0o610, "sources": sources}},
                memory("slurm-logfile"),
                memory("run"),
                {"name": "slurm-authsocket", "emptyDir": {}},
            ],
        }
        annotations = hashes | {"kubectl.kubernetes.io/default-container": "slurmctld"}
        return {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "podManagementPolicy": "Parallel",
            "serviceName": "old-controller",
            "selector": {"matchLabels": selector("slurmctld", NAME)},
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
        return self.image("slurmctld") | {
            "name": "slurmctld",
            "ports": [{"name": "slurmctld", "containerPort": 6817}],
            "startupProbe": live,
            "livenessProbe": live,
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "slurmctld"}},
            "securityContext": nonroot(401),
            "volumeMounts": [etc(), *({"name": name, "mountPath": path} for path, name in mounts.items())],
        }

    def _reconfigure(self) -> Tree:
        return self.image("slurmctld") | {
            "name": "reconfigure",
            "restartPolicy": "Always",
            "command": ["tini", "-g", "--", "bash", "-c", RECONFIGURE],
            "volumeMounts": [
                etc(),
                {"name": "slurm-authsocket", "mountPath": "/run/slurmctld", "readOnly": True},
            ],
        }

    def _slurmrestd_spec(self, labels: Tree) -> Tree:
        probe = {"tcpSocket": {"port": 6820}}
        slow = probe | {"failureThreshold": 6, "periodSeconds": 10}
        file = {"configMap": {"name": "old-config", "items": [{"key": "slurm.conf", "path": "slurm.conf"}]}}
        sources = [file, secret_file("old-auth-slurm", "slurm.key")]
        container = self.image("slurmrestd") | {
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
            "securityContext": nonroot(65534),
            "volumeMounts": [etc()],
        }
        pod = {
            "automountServiceAccountToken": False,
            "securityContext": nonroot(65534) | {"fsGroup": 65534},
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "containers": [container],
            "volumes": [{"name": "slurm-etc", "projected": {"defaultMode": 0o600, "sources": sources}}],
        }
        annotations = {"kubectl.kubernetes.io/default-container": "slurmrestd"}
        return {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": selector("slurmrestd", NAME)},
            "template": {"metadata": {"labels": labels | CHART_LABELS, "annotations": annotations}, "spec": pod},
        }
