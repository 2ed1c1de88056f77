"""The steps from the ConfigMap into slurmctld and all workers."""

from enum import Enum

import msgspec

from kubeslurm.api import names
from kubeslurm.api.views import Pod
from kubeslurm.decide.config import running
from kubeslurm.decide.config.facts import Configuration, Facts, Progress
from kubeslurm.slurm import conf

# The kubelet refreshes a pod's files 0.3 to 1.0 s after the pod object changed (measured).
REFRESH_DELAY = 1.0
# A reconfigure that cannot be seen to have worked is repeated after this long.
RECONFIGURE_DELAY = 5.0
LONGEST_RECONFIGURE_DELAY = 60.0
# Workers that do not follow within this time are named, and waited for no longer.
WORKERS_DEADLINE = 10.0
SHORTEST_RETRY = 0.02


class DeliveryStep(Enum):
    """What is done next."""

    AWAIT_POD = "await pod"
    REFRESH_FILES = "refresh files"
    AWAIT_FILES = "await files"
    AWAIT_SLURM = "await slurm"
    AWAIT_JOBS = "await jobs"
    RECONFIGURE = "reconfigure"
    AWAIT_RUNNING = "await running"
    RECORD_RUNNING = "record running"
    RUNNING = "running"


class Delivery(msgspec.Struct, frozen=True):
    """The step, and what Slurm's answer says about the one before."""

    step: DeliveryStep
    has_read: bool = False  # slurmctld has read it; only workers may be behind
    late_workers: tuple[str, ...] = ()
    retry_after: float | None = None

    @property
    def is_running(self) -> bool:
        """Whether slurmctld runs with it when the step is done."""
        return self.step in (DeliveryStep.RUNNING, DeliveryStep.RECORD_RUNNING)


def decide_delivery(facts: Facts, config: Configuration | None) -> Delivery:
    """One step at a time; each rests on what is recorded on the pod, so that a new operator process goes on with it."""
    if facts.external or facts.backups:
        return Delivery(DeliveryStep.RUNNING)
    if config is None or not config.slurm_conf or facts.pod is None:
        return Delivery(DeliveryStep.AWAIT_POD)
    progress = facts.progress if facts.progress.digest == config.digest else Progress()
    has_read = _has_read(progress, config)
    step = _recorded_step(facts, facts.pod, config.digest)
    if step is None:
        step = _reconfigure_step(progress, has_read=has_read, reachable=facts.reachable)
    # slurmctld and every slurmd read their key again when they reconfigure.
    if step is DeliveryStep.RECONFIGURE and facts.waiting_key is not None:
        step = DeliveryStep.AWAIT_JOBS
    return Delivery(
        step=step,
        has_read=has_read,
        late_workers=progress.reading.late_workers if progress.reading else (),
        retry_after=_retry_after(step, progress),
    )


def reconfigure_delay(attempts: int) -> float:
    """How long to wait for the effect of a reconfigure; each one restarts every slurmd, so they come ever later."""
    return float(min(RECONFIGURE_DELAY * 2 ** max(attempts - 1, 0), LONGEST_RECONFIGURE_DELAY))


def _recorded_step(facts: Facts, pod: Pod, digest: str) -> DeliveryStep | None:
    """The step as far as the pod's records tell; None when its files are refreshed and slurmctld has to read them."""
    if not _is_started(pod):
        return DeliveryStep.AWAIT_POD
    delivered = pod.metadata.annotations.get(names.CONFIG_DELIVERED, "")
    recorded = pod.metadata.annotations.get(names.CONFIG_RUNNING, "")
    if recorded == digest:
        return DeliveryStep.RUNNING
    # A new pod that starts with the configuration that ran before has read it from its files.
    if not recorded and not delivered and facts.running == digest:
        return DeliveryStep.RECORD_RUNNING
    return DeliveryStep.REFRESH_FILES if delivered != digest else None


def _reconfigure_step(progress: Progress, *, has_read: bool, reachable: bool) -> DeliveryStep:
    if _is_running(progress, has_read=has_read):
        return DeliveryStep.RECORD_RUNNING
    if progress.since_refresh is not None and progress.since_refresh < REFRESH_DELAY:
        return DeliveryStep.AWAIT_FILES
    if not reachable:
        return DeliveryStep.AWAIT_SLURM
    waited = progress.since_reconfigure
    # Once slurmctld has read it, another reconfigure would restart all workers for the sake of one.
    if has_read or (waited is not None and waited < reconfigure_delay(progress.attempts)):
        return DeliveryStep.AWAIT_RUNNING
    return DeliveryStep.RECONFIGURE


def _has_read(progress: Progress, config: Configuration) -> bool:
    if progress.since_read is not None:
        return True
    now = progress.reading.running if progress.reading else None
    return now is not None and running.has_read(conf.checksum(config.slurm_conf), progress.before, now)


def _is_running(progress: Progress, *, has_read: bool) -> bool:
    """Whether slurmctld has read the files, and the workers have followed or had their time to."""
    reading = progress.reading
    if reading is None:
        return False
    if reading.running is None:
        return reading.responding
    waited = progress.since_read or 0.0
    return has_read and (not reading.late_workers or waited >= WORKERS_DEADLINE)


def _is_started(pod: Pod) -> bool:
    status = pod.container_status(names.SLURMCTLD)
    return bool(status and status.state.running and status.started and not pod.deleting)


def _retry_after(step: DeliveryStep, progress: Progress) -> float | None:
    match step:
        case DeliveryStep.REFRESH_FILES:
            return REFRESH_DELAY
        case DeliveryStep.AWAIT_FILES:
            return max(REFRESH_DELAY - (progress.since_refresh or 0.0), SHORTEST_RETRY)
        case DeliveryStep.RECONFIGURE | DeliveryStep.AWAIT_RUNNING:
            return 0.2
        case DeliveryStep.AWAIT_SLURM:
            return 1.0
    return None
