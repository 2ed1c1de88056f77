"""The closed list of condition reasons; programs may rely on it, and docs/api.md says what each means."""

from enum import StrEnum


class Reason(StrEnum):
    """Why a condition has its status."""

    # Nothing is wrong.
    ACCEPTED = "Accepted"  # ConfigAccepted=True
    HEALTHY = "Healthy"  # Degraded=False
    READY = "Ready"  # Ready=True
    STABLE = "Stable"  # Progressing=False

    # In progress.
    CONFIG_DELIVERING = "ConfigDelivering"
    CONFIG_TRIAL_RUNNING = "ConfigTrialRunning"
    CONVERTING_DATABASE = "ConvertingDatabase"
    DELETION_BLOCKED = "DeletionBlocked"
    DRAINING = "Draining"
    KEY_CHANGE_WAITING = "KeyChangeWaiting"
    NOT_READY = "NotReady"
    PARTITION_IN_USE = "PartitionInUse"
    PAUSED = "Paused"
    SCALING = "Scaling"
    STARTING = "Starting"
    UNREGISTERED = "Unregistered"
    UPDATING = "Updating"
    WAITING_FOR_ACCOUNTING = "WaitingForAccounting"
    WAITING_FOR_CONFIG = "WaitingForConfig"

    # What an object refers to does not exist.
    ACCOUNTING_NOT_FOUND = "AccountingNotFound"
    CONFIG_MAP_NOT_FOUND = "ConfigMapNotFound"
    CONTROLLER_NOT_FOUND = "ControllerNotFound"
    SECRET_KEY_NOT_FOUND = "SecretKeyNotFound"  # noqa: S105

    # Somebody has to act.
    CONFIG_REJECTED = "ConfigRejected"
    CONFIG_TRIAL_INCONCLUSIVE = "ConfigTrialInconclusive"
    CRASH_LOOP = "CrashLoopBackOff"
    DATABASE_ACCESS_DENIED = "DatabaseAccessDenied"
    DATABASE_MISCONFIGURED = "DatabaseMisconfigured"
    DATABASE_NOT_REACHABLE = "DatabaseNotReachable"
    DIRECTORY_NOT_REACHABLE = "DirectoryNotReachable"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    INVALID_REGISTRATION = "InvalidRegistration"
    INVALID_SPEC = "InvalidSpec"
    NODE_NAME_CONFLICT = "NodeNameConflict"
    OBJECT_NOT_DECODED = "ObjectNotDecoded"
    NOT_SUPPORTED = "NotSupported"
    RECONFIGURE_FAILED = "ReconfigureFailed"
    REJECTED = "Rejected"
    REQUEST_FAILED = "RequestFailed"
    SLURM_NOT_REACHABLE = "SlurmNotReachable"
    SLURM_REJECTED = "SlurmRejected"
    TOKEN_EXPIRED = "TokenExpired"  # noqa: S105
    UNSCHEDULABLE = "Unschedulable"
