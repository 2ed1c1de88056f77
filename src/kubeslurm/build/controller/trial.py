"""The trial of a configuration: a temporary slurmctld starts with it before the real one reads it.

It runs in a pod of its own: started next to the running daemon it would kill it through the pid file. It reads what
slurmctld reads, so mistakes in gres.conf, which only slurmd reads, are not found. It has the volumes, mounts and init
containers that a user gave slurmctld, since files there may belong to the configuration; only the volume with the
cluster's state is replaced by an empty one.
"""

from collections.abc import Mapping

from kubeslurm.api import labels, names
from kubeslurm.api.kinds import CONFIGMAP, POD
from kubeslurm.api.meta import Tree
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.build import scripts
from kubeslurm.build.common.metadata import child_metadata, label_selector, object_tree
from kubeslurm.build.common.volumes import key_files, memory, projected
from kubeslurm.build.controller.config import SLURM_CONF
from kubeslurm.build.controller.statefulset import CONFIG_MODE, pod_spec
from kubeslurm.slurm import conf

CONTAINER = "trial"
SCRATCH = "trial-scratch"
FOLDER = "/kubeslurm-trial"  # no volume of a user is mounted there
STATE = f"{FOLDER}/state"  # the script makes it
# Seconds until a trial is ended that neither starts nor fails; init containers may take their time.
DEADLINE = 60
DEADLINE_WITH_INIT = 300
PLACEMENT = ("affinity", "imagePullSecrets", "nodeSelector", "priorityClassName", "runtimeClassName", "tolerations")
# Settings that would connect the trial with the running cluster: its database, its files, its address.
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

SCRIPT = scripts.read("slurmctld-trial.sh")


def trial_conf(text: str, hostname: str) -> str:
    """slurm.conf for the trial. Line numbers stay, so that the lines in slurmctld's errors can be found."""
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
    """The files that are tried."""
    hostname = names.controller_pod(owner.name)
    data = {**files, SLURM_CONF: trial_conf(files[SLURM_CONF], hostname)}
    return object_tree(CONFIGMAP, _metadata(owner, digest), immutable=False, data=data)


def pod(owner: Controller, digest: str, node: str = "") -> Tree:
    """The pod that runs the trial, with image, placement and volumes of the real one, which runs on `node`."""
    real = pod_spec(owner)
    taken = {field: real[field] for field in PLACEMENT if field in real}
    volumes = _volumes(owner, real, digest)
    init = [each for each in real["initContainers"] if each["name"] != names.LOGFILE]
    if node and any("persistentVolumeClaim" in each for each in volumes):
        # Most volumes can be mounted on one node at a time.
        taken["nodeName"] = node
    spec: Tree = {
        "affinity": _near(owner),
        **taken,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": DEADLINE_WITH_INIT if init else DEADLINE,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": names.controller_pod(owner.name),
        "securityContext": real["securityContext"],
        **({"initContainers": init} if init else {}),
        "containers": [_container(real)],
        "volumes": volumes,
    }
    return object_tree(POD, _metadata(owner, digest), spec=spec)


def _volumes(owner: Controller, real: Tree, digest: str) -> list[Tree]:
    """The volumes of the real pod, with the files on trial and without the state of the cluster."""
    keys = key_files(owner.spec.slurmKeyRef, owner.spec.jwt_ref)
    sources = [{"configMap": {"name": names.config_trial(owner.name, digest)}}, *keys]
    replaced = (
        projected(names.VOLUME_ETC, sources, CONFIG_MODE),
        {"name": names.VOLUME_STATE, "emptyDir": {}},
        memory(SCRATCH),
    )
    taken = {each["name"] for each in replaced}
    rest = [each for each in real["volumes"] if each["name"] not in taken]
    return [*replaced, *({"name": each["name"], "emptyDir": {}} if _is_state(owner, each) else each for each in rest)]


def _is_state(owner: Controller, volume: Tree) -> bool:
    """Whether a user's volume is the claim that holds the state of the cluster."""
    persistence = owner.spec.persistence
    made = f"{names.VOLUME_STATE}-{names.controller_pod(owner.name)}"
    state = (persistence.existingClaim if persistence else "") or made
    return bool((volume.get("persistentVolumeClaim") or {}).get("claimName") == state)


def _container(real: Tree) -> Tree:
    slurmctld = next(each for each in real["containers"] if each["name"] == names.SLURMCTLD)
    fields = ("image", "imagePullPolicy", "envFrom", "env", "securityContext")
    return {
        "name": CONTAINER,
        **{field: slurmctld[field] for field in fields if field in slurmctld},
        "command": ["sh", "-c", SCRIPT],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*slurmctld["volumeMounts"], {"name": SCRATCH, "mountPath": FOLDER}],
    }


def _metadata(owner: Controller, digest: str) -> Tree:
    own = {"labels": {names.LABEL_TRIAL: owner.name}, "annotations": {names.CONFIG_TRIED: digest}}
    return child_metadata(owner, names.config_trial(owner.name, digest), own)


def _near(owner: Controller) -> Tree:
    """On the node of the real slurmctld if possible: the image is there already."""
    term = {
        "labelSelector": label_selector(labels.selector(names.SLURMCTLD, owner.name)),
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
