"""A throw-away slurmctld that tries a configuration before the real one gets to see it.

It runs in a pod of its own: started next to the live daemon it would kill it through the pid file. It sees what
slurmctld sees, so mistakes in gres.conf, which only slurmd reads, pass.
"""

from collections.abc import Mapping

from kubeslurm.api import labels, names
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build.common import parts
from kubeslurm.build.common.merge import merge_metadata
from kubeslurm.build.controller import config, objects
from kubeslurm.slurm import conf

CONTAINER = "trial"
STATE = "/scratch/state"
# Seconds until a trial that neither starts nor dies is given up.
DEADLINE = 60
PLACEMENT = ("affinity", "imagePullSecrets", "nodeSelector", "priorityClassName", "runtimeClassName", "tolerations")
# Settings that would tie the trial to the live cluster: its database, its files, its address.
REPLACED = (
    "accountingstoragebackuphost",
    "accountingstorageenforce",
    "accountingstorageexternalhost",
    "accountingstoragehost",
    "accountingstorageport",
    "accountingstoragetype",
    "slurmctldaddr",
    "slurmctldhost",
    "slurmctldlogfile",
    "slurmctldpidfile",
    "slurmschedlogfile",
    "statesavelocation",
)

# Prints what slurmctld said and hands it to the kubelet, which shows it in the pod's status.
SCRIPT = f"""\
mkdir -p {STATE} /run/slurmctld
slurmctld -D -c >/scratch/log 2>&1 &
pid=$!
while kill -0 "$pid" 2>/dev/null; do
  if grep -q 'Running as primary' /scratch/log; then
    kill -9 "$pid"
    cat /scratch/log
    exit 0
  fi
  sleep 0.05
done
cat /scratch/log
grep -E 'error|fatal' /scratch/log | tail -n 20 | cut -c 1-300 >/dev/termination-log
exit 1
"""


def trial_conf(text: str, hostname: str) -> str:
    """slurm.conf for the trial: line numbers stay, so that what slurmctld complains about can be found."""
    replaced = {entry.line for entry in conf.parse(text) if entry.first and entry.first.key in REPLACED}
    lines: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        lines.append("#" if number in replaced else line)
        if number in replaced and line.endswith("\\"):
            replaced.add(number + 1)
    lines += [
        f"SlurmctldHost={hostname}",
        f"StateSaveLocation={STATE}",
        "SlurmctldPidFile=/run/slurmctld/trial.pid",
        "AccountingStorageType=accounting_storage/none",
    ]
    return "\n".join(lines) + "\n"


def configmap(owner: Controller, files: Mapping[str, str], digest: str) -> Tree:
    """The files that are on trial."""
    hostname = names.controller_pod(owner.name)
    data = {**files, config.SLURM_CONF: trial_conf(files[config.SLURM_CONF], hostname)}
    return parts.object_tree("v1", "ConfigMap", _metadata(owner, digest), immutable=False, data=data)


def pod(owner: Controller, digest: str) -> Tree:
    """The pod that runs the trial, with the image and the placement of the real one."""
    real = objects.pod_spec(owner)
    taken = {field: real[field] for field in PLACEMENT if field in real}
    sources = [{"configMap": {"name": names.config_trial(owner.name, digest)}}, *objects.key_files(owner)]
    spec: Tree = {
        "affinity": _near(owner),
        **taken,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": DEADLINE,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": names.controller_pod(owner.name),
        "securityContext": real["securityContext"],
        "containers": [_container(real)],
        "volumes": [
            parts.projected(names.VOLUME_ETC, objects.CONFIG_MODE, sources),
            parts.memory(names.VOLUME_RUN),
            parts.memory("scratch"),
        ],
    }
    return parts.object_tree("v1", "Pod", _metadata(owner, digest), spec=spec)


def _container(real: Tree) -> Tree:
    slurmctld = next(each for each in real["containers"] if each["name"] == names.SLURMCTLD)
    fields = ("image", "imagePullPolicy", "envFrom", "env", "securityContext")
    return {
        "name": CONTAINER,
        **{field: slurmctld[field] for field in fields if field in slurmctld},
        "command": ["sh", "-c", SCRIPT],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": names.VOLUME_ETC, "mountPath": names.ETC_DIR, "readOnly": True},
            {"name": names.VOLUME_RUN, "mountPath": names.RUN_DIR},
            {"name": "scratch", "mountPath": "/scratch"},
        ],
    }


def _metadata(owner: Controller, digest: str) -> Tree:
    layers = merge_metadata({"labels": {names.LABEL_TRIAL: owner.name}, "annotations": {names.CONFIG_TRIED: digest}})
    return parts.metadata(names.config_trial(owner.name, digest), owner.metadata, objects.KIND, layers)


def _near(owner: Controller) -> Tree:
    """Beside the real slurmctld if possible: the image is there already."""
    term = {
        "labelSelector": parts.selected(labels.selector(names.SLURMCTLD, owner.name)),
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
