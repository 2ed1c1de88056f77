"""Every name, key, port and path that other programs rely on, in one place.

They are the interface of clusters that already exist: changing one orphans objects or breaks a user's template.
"""

from typing import Final

# Slinky's API group, whose kinds, labels and annotations existing clusters have.
GROUP: Final = "slinky.slurm.net"
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
# Our own group, for everything that Slinky does not have.
OWN_GROUP: Final = "kubeslurm.dev"
OWN_VERSION: Final = "v1alpha1"

# Labels of child objects.
LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_CLUSTER: Final = f"{GROUP}/cluster"
LABEL_REVISION: Final = "controller.kubernetes.io/hash"
LABEL_TRIAL: Final = f"{OWN_GROUP}/config-trial"

# Labels of workers.
LABEL_POD_NAME: Final = f"nodeset.{GROUP}/pod-name"
LABEL_POD_INDEX: Final = f"nodeset.{GROUP}/pod-index"
LABEL_POD_HOSTNAME: Final = f"nodeset.{GROUP}/pod-hostname"
LABEL_POD_PROTECT: Final = f"nodeset.{GROUP}/pod-protect"
LABEL_SCALING_MODE: Final = f"nodeset.{GROUP}/scaling-mode"

# Values of the name label; they are also the names of containers and ports.
SLURMCTLD: Final = "slurmctld"
SLURMD: Final = "slurmd"
SLURMDBD: Final = "slurmdbd"
SLURMRESTD: Final = "slurmrestd"
LOGIN: Final = "login"

# Values of the component label.
CONTROLLER: Final = "controller"
RESTAPI: Final = "restapi"
ACCOUNTING: Final = "accounting"
WORKER: Final = "worker"

# Annotations of workers.
POD_CORDON: Final = f"nodeset.{GROUP}/pod-cordon"
POD_CORDON_BY: Final = f"{OWN_GROUP}/cordoned-by"  # tells a cordon of ours from a user's
POD_DELETION_COST: Final = f"nodeset.{GROUP}/pod-deletion-cost"
POD_DEADLINE: Final = f"nodeset.{GROUP}/pod-deadline"
POD_BUSY: Final = f"{OWN_GROUP}/busy"  # "true": jobs ran there when Slurm last told about the node
# When the slurmd container was noticed, in seconds by slurmctld's clock, and which container that is.
SLURMD_NOTICED: Final = f"{OWN_GROUP}/slurmd-noticed"

# Annotations of Kubernetes nodes, and their taints.
NODE_CORDON_REASON: Final = f"nodeset.{GROUP}/node-cordon-reason"
HOSTNAME_OVERRIDE: Final = f"nodeset.{GROUP}/hostname-override"
TOPOLOGY_SPEC: Final = f"topology.{GROUP}/spec"
FEATURES_SPEC: Final = f"features.{GROUP}/spec"
WORKER_TAINT: Final = f"nodeset.{GROUP}/worker"
# On a node whose Slurm node an admin drained: the taint, and the annotation that says what we did about it.
SLURM_DRAIN: Final = f"{OWN_GROUP}/slurm-drain"
SLURM_DRAIN_CONDITION: Final = "SlurmDrain"

# Annotations of pods: hashes of what a daemon reads only when it starts. Another value replaces the pod.
SLURM_KEY_HASH: Final = f"{GROUP}/slurm-key-hash"
JWT_KEY_HASH: Final = f"{GROUP}/jwt-key-hash"
SLURMDBD_CONF_HASH: Final = f"{GROUP}/slurmdbd-conf-hash"
SSHD_CONF_HASH: Final = f"{GROUP}/sshd-conf-hash"
SSSD_CONF_HASH: Final = f"{GROUP}/sssd-conf-hash"
SSH_HOST_KEYS_HASH: Final = f"{GROUP}/ssh-host-keys-hash"
RESTART_HASH: Final = f"{OWN_GROUP}/restart-hash"  # settings; only pods made by kubeslurm have it

# Annotations about slurmctld's configuration; each value is a hash of all files, except where noted.
CONFIG_DELIVERED: Final = f"{OWN_GROUP}/config"  # on the ConfigMap; on the pod it makes the kubelet refresh the mount
CONFIG_RUNNING: Final = f"{OWN_GROUP}/config-applied"  # on the pod: what slurmctld was seen to run with
CONFIG_REFRESHED: Final = f"{OWN_GROUP}/config-refreshed"  # on the pod: when an edit of the ConfigMap was undone
SLURM_CONF: Final = "slurm.conf"
CONFIG_TRIED: Final = f"{OWN_GROUP}/tried"  # on a trial's objects: what is tried

# Annotations and finalizers of other objects.
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
# On a workload: hashes of what users asked for, and of the pod template that a release made of it.
REQUESTED: Final = f"{OWN_GROUP}/requested"  # another value replaces the pods
TEMPLATE: Final = f"{OWN_GROUP}/template"
SIGNING_KEY_HASH: Final = f"{OWN_GROUP}/signing-key-hash"  # on a token's Secret: the key that signed the token
# "false" on a Controller: the user brings the key, so it is waited for and never made.
MAKE_SLURM_KEY: Final = f"{OWN_GROUP}/make-slurm-key"
MAKE_JWT_KEY: Final = f"{OWN_GROUP}/make-jwt-key"
FORCE_DELETE: Final = f"{OWN_GROUP}/force-delete"  # "true" on a custom resource: delete it without waiting
FINALIZER: Final = f"{OWN_GROUP}/cleanup"
RESERVATION_FINALIZER: Final = "nodeset.slinky.slurm.net/reservation"
"""Another operator holds a NodeSet with it until the reservation of a ScheduledUpdate is deleted."""

FEATURE_PREFIX: Final = "k8s/"  # of Slurm features that come from the annotation of a Kubernetes node

DOMAIN: Final = "cluster.local"  # where a cluster calls itself otherwise, short names still work
SLURM_USER: Final = "slurm"
SLURM_UID: Final = 401
NOBODY_UID: Final = 65534

SLURMCTLD_PORT: Final = 6817
SLURMD_PORT: Final = 6818
SLURMDBD_PORT: Final = 6819
SLURMRESTD_PORT: Final = 6820
SSH_PORT: Final = 22

# Containers besides the daemons.
LOGFILE: Final = "logfile"
INITCONF: Final = "initconf"

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
    """The ConfigMap with the configuration that slurmctld reads."""
    return f"{controller_name}-config"


def kept_keys(controller_name: str) -> str:
    """The Secret with our copy of both keys of a cluster."""
    return f"{controller_name}-controller-jwt-kept"


def second_owner(controller_name: str) -> str:
    """The ConfigMap that owns, besides the Controller and its NodeSets, what draining workers needs."""
    return f"{controller_name}-second-owner"


def config_trial(controller_name: str, digest: str) -> str:
    """The ConfigMap and the pod that try a configuration before it is delivered."""
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


def update_reservation(nodeset_name: str) -> str:
    """The Slurm reservation that another operator makes for a ScheduledUpdate of a NodeSet."""
    return f"SlurmOperatorMaint-{nodeset_name}"


def slurm_node_owner(nodeset_uid: str) -> str:
    """The field `extra` of a worker's Slurm node: says whose it is from the moment slurmd registers."""
    return f"nodeset:{nodeset_uid}"


def state_dir(cluster_name: str) -> str:
    """Where slurmctld of this cluster keeps its state."""
    return f"{STATE_DIR}/{cluster_name}"


def host(service: str, namespace: str) -> str:
    """The short DNS name of a Service, which every pod can resolve."""
    return f"{service}.{namespace}"


def full_host(service: str, namespace: str, domain: str = DOMAIN) -> str:
    """The full DNS name of a Service, which needs no search domains."""
    return f"{service}.{namespace}.svc.{domain}"
