"""Every name, key, port and path that other programs rely on, in one place.

They are the interface of clusters that already exist: changing one orphans objects or breaks a user's template.
"""

from typing import Final

GROUP: Final = "slinky.slurm.net"
API_VERSION: Final = f"{GROUP}/v1beta1"

# Labels of children and pods.
LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_CLUSTER: Final = f"{GROUP}/cluster"
LABEL_POD_NAME: Final = f"nodeset.{GROUP}/pod-name"
LABEL_POD_INDEX: Final = f"nodeset.{GROUP}/pod-index"
LABEL_POD_HOSTNAME: Final = f"nodeset.{GROUP}/pod-hostname"
LABEL_POD_PROTECT: Final = f"nodeset.{GROUP}/pod-protect"
LABEL_SCALING_MODE: Final = f"nodeset.{GROUP}/scaling-mode"
LABEL_REVISION: Final = "controller.kubernetes.io/hash"
LABEL_TRIAL: Final = "kubeslurm.dev/config-trial"

# Annotations that the reference defines.
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
POD_CORDON: Final = f"nodeset.{GROUP}/pod-cordon"
POD_DELETION_COST: Final = f"nodeset.{GROUP}/pod-deletion-cost"
POD_DEADLINE: Final = f"nodeset.{GROUP}/pod-deadline"
NODE_CORDON_REASON: Final = f"nodeset.{GROUP}/node-cordon-reason"
HOSTNAME_OVERRIDE: Final = f"nodeset.{GROUP}/hostname-override"
TOPOLOGY_SPEC: Final = f"topology.{GROUP}/spec"
FEATURES_SPEC: Final = f"features.{GROUP}/spec"
SLURM_KEY_HASH: Final = f"{GROUP}/slurm-key-hash"
JWT_KEY_HASH: Final = f"{GROUP}/jwt-key-hash"
SLURMDBD_CONF_HASH: Final = f"{GROUP}/slurmdbd-conf-hash"
SSHD_CONF_HASH: Final = f"{GROUP}/sshd-conf-hash"
SSSD_CONF_HASH: Final = f"{GROUP}/sssd-conf-hash"
SSH_HOST_KEYS_HASH: Final = f"{GROUP}/ssh-host-keys-hash"

# Annotations, labels and finalizers of our own.
OUR_GROUP: Final = "kubeslurm.dev"
# Hash of the checked files; set on a pod it also makes the kubelet refresh the mounts at once.
CONFIG_LIVE: Final = f"{OUR_GROUP}/config"
# On the slurmctld pod: hash of the files that slurmctld was seen to run with.
CONFIG_APPLIED: Final = f"{OUR_GROUP}/config-applied"
CONFIG_REFRESHED: Final = f"{OUR_GROUP}/config-refreshed"  # on the slurmctld pod: when an edit by hand was undone
CONFIG_TRIED: Final = f"{OUR_GROUP}/tried"  # on a trial pod: hash of the files it tries
ADOPTED: Final = f"{OUR_GROUP}/adopted"  # on a workload made by another operator: hash of what we would have made
RESTART_HASH: Final = f"{OUR_GROUP}/restart-hash"  # the settings Slurm reads only when it starts
KEY_HASH: Final = f"{OUR_GROUP}/signing-key-hash"  # on a token Secret: which signing key made it
POD_CORDON_BY: Final = f"{OUR_GROUP}/cordoned-by"  # tells a cordon of ours from a user's
# On a worker: when its slurmd container was noticed, in seconds by slurmctld's clock, and which container that is.
SLURMD_NOTICED: Final = f"{OUR_GROUP}/slurmd-noticed"
FORCE_DELETE: Final = f"{OUR_GROUP}/force-delete"  # "true" on a CR: do not hold the deletion for anything
FINALIZER: Final = f"{OUR_GROUP}/cleanup"
WORKER_TAINT: Final = f"nodeset.{GROUP}/worker"
# On a Kubernetes node whose Slurm node an admin drained: the taint, and the annotation that says what we did about it.
SLURM_DRAIN: Final = f"{OUR_GROUP}/slurm-drain"
SLURM_DRAIN_CONDITION: Final = "SlurmDrain"

FEATURE_PREFIX: Final = "k8s/"

DOMAIN: Final = "cluster.local"  # where a cluster calls itself otherwise, short names still work
SLURM_USER: Final = "slurm"
SLURM_UID: Final = 401
NOBODY_UID: Final = 65534

SLURMCTLD_PORT: Final = 6817
SLURMD_PORT: Final = 6818
SLURMDBD_PORT: Final = 6819
SLURMRESTD_PORT: Final = 6820
SSH_PORT: Final = 22

# Container names; they are also the values of the name label and the names of the ports.
SLURMCTLD: Final = "slurmctld"
SLURMD: Final = "slurmd"
SLURMDBD: Final = "slurmdbd"
SLURMRESTD: Final = "slurmrestd"
LOGIN: Final = "login"
LOGFILE: Final = "logfile"
INITCONF: Final = "initconf"

# Component label values.
CONTROLLER: Final = "controller"
RESTAPI: Final = "restapi"
ACCOUNTING: Final = "accounting"
WORKER: Final = "worker"

# Volumes: users' templates refer to them by name.
VOLUME_ETC: Final = "slurm-etc"
VOLUME_LOGFILE: Final = "slurm-logfile"
VOLUME_RUN: Final = "run"
VOLUME_STATE: Final = "statesave"
VOLUME_AUTHSOCKET: Final = "slurm-authsocket"
VOLUME_SACKD: Final = "sackd-dir"
VOLUME_CONFIG: Final = "slurm-config"
VOLUME_SSH_CONFIG: Final = "ssh-config"
VOLUME_SSH_HOST_KEYS: Final = "ssh-host-keys"
VOLUME_SSSD: Final = "sssd-conf"

ETC_DIR: Final = "/etc/slurm"
RUN_DIR: Final = "/run"
LOG_DIR: Final = "/var/log/slurm"
SLURMCTLD_LOG: Final = f"{LOG_DIR}/slurmctld.log"
SLURMD_LOG: Final = f"{LOG_DIR}/slurmd.log"
STATE_DIR: Final = "/var/spool/slurmctld"
SPOOL_DIR: Final = "/var/spool/slurmd"
AUTHSOCKET_DIR: Final = "/run/slurmctld"
SACKD_DIR: Final = "/run/slurm"

SLURM_KEY_FILE: Final = "slurm.key"
JWT_KEY_FILE: Final = "jwt.key"
JWKS_FILE: Final = "jwks.json"


def controller(name: str) -> str:
    """StatefulSet, Service and ServiceMonitor of a Controller."""
    return f"{name}-controller"


def controller_pod(name: str, ordinal: int = 0) -> str:
    """The slurmctld pod, which is also the SlurmctldHost name."""
    return f"{name}-controller-{ordinal}"


def config(controller_name: str) -> str:
    """The ConfigMap with the checked configuration of a Controller."""
    return f"{controller_name}-config"


def kept_key(controller_name: str) -> str:
    """The Secret with our copy of the key that signs tokens."""
    return f"{controller_name}-controller-jwt-kept"


def config_trial(controller_name: str, digest: str) -> str:
    """The ConfigMap and Pod in which a wanted configuration is tried before it becomes live."""
    return f"{controller_name}-config-trial-{digest[:10]}"


def accounting(name: str) -> str:
    """StatefulSet, Service and Secret of an Accounting."""
    return f"{name}-accounting"


def restapi(name: str) -> str:
    """Deployment and Service of a RestApi."""
    return f"{name}-restapi"


def login_ssh_config(name: str) -> str:
    """ConfigMap with sshd_config, of a LoginSet or of a NodeSet with ssh."""
    return f"{name}-ssh-config"


def login_host_keys(name: str) -> str:
    """Secret with the ssh host keys of a LoginSet."""
    return f"{name}-ssh-host-keys"


def workers_service(controller_name: str) -> str:
    """The headless Service shared by all workers of a Controller; also their subdomain."""
    return f"slurm-workers-{controller_name}"


def workers_pdb(controller_name: str) -> str:
    """The PodDisruptionBudget shared by all busy workers of a Controller."""
    return f"slurm-workers-pdb-{controller_name}"


def state_dir(cluster_name: str) -> str:
    """Where slurmctld of this cluster keeps its state."""
    return f"{STATE_DIR}/{cluster_name}"


def host(service: str, namespace: str) -> str:
    """The short DNS name of a Service, good from any pod."""
    return f"{service}.{namespace}"


def full_host(service: str, namespace: str, domain: str = DOMAIN) -> str:
    """The full DNS name of a Service, good without search domains."""
    return f"{service}.{namespace}.svc.{domain}"
