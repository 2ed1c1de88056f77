"""What a user asked that operator's chart for."""

from tests.support.predecessor.parts import CHART_LABELS, NAME, NODESET, Parts, Tree, obj, template

WORKERS = 2
EXTRA_CONF = """\
ReturnToService=2
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED"""


class Chart(Parts):
    """The objects that Helm makes."""

    def objects(self) -> list[Tree]:
        return [*self._keys(), self._config_extra(), self._controller(), self._restapi(), self._nodeset()]

    def _keys(self) -> list[Tree]:
        names = (("slurm", "k" * 1024), ("jwt", "j" * 1024))
        return [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"old-auth-{name}", "labels": CHART_LABELS}}
            | {"type": "Opaque", "immutable": True, "stringData": {f"{name}.key": value}}
            for name, value in names
        ]

    def _config_extra(self) -> Tree:
        data = {"cgroup.conf": "CgroupPlugin=disabled\n"}
        return obj("v1", "ConfigMap", "old-config-extra", CHART_LABELS) | {"data": data}

    def _controller(self) -> Tree:
        spec = {
            "slurmKeyRef": {"name": "old-auth-slurm", "key": "slurm.key"},
            "jwtKeyRef": {"name": "old-auth-jwt", "key": "jwt.key"},
            "slurmctld": self.image("slurmctld"),
            "reconfigure": self.image("slurmctld"),
            "logfile": self.image("slurmctld"),
            "inplaceReconfigure": True,
            "extraConf": EXTRA_CONF,
            "configFileRefs": [{"name": "old-config-extra"}],
            "persistence": {"enabled": True, "accessModes": ["ReadWriteOnce"]}
            | {"resources": {"requests": {"storage": "4Gi"}}},
            "template": template({}),
            "service": {"metadata": {}, "spec": {}},
        }
        return self._ours("Controller", NAME, spec)

    def _restapi(self) -> Tree:
        spec = {
            "controllerRef": {"name": NAME},
            "replicas": 1,
            "slurmrestd": self.image("slurmrestd"),
            "template": template({}),
            "service": {"metadata": {}, "spec": {}},
        }
        return self._ours("RestApi", NAME, spec)

    def _nodeset(self) -> Tree:
        spec = {
            "controllerRef": {"name": NAME},
            "scalingMode": "StatefulSet",
            "replicas": WORKERS,
            "slurmd": self.slurmd(),
            "logfile": self.image("slurmctld"),
            "oversubscribeNode": False,
            "ordinalPadding": 0,
            "workloadDisruptionProtection": True,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
            "template": template({"hostname": "cpu-"}),
        }
        return self._ours("NodeSet", NODESET, spec)

    def _ours(self, kind: str, name: str, spec: Tree) -> Tree:
        return obj("slinky.slurm.net/v1beta1", kind, name, CHART_LABELS) | {"spec": spec}
