"""Brings the mounted configuration into the running slurmctld and its workers, and sees that it arrived."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from kubeslurm.api import names
from kubeslurm.api.kinds import POD
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import Pod
from kubeslurm.decide.config import running
from kubeslurm.decide.config import stages as decide
from kubeslurm.decide.config.stages import Delivery
from kubeslurm.engine.key import Key
from kubeslurm.kube.client import Kube
from kubeslurm.report.events import Event, Recorder
from kubeslurm.slurm import conf
from kubeslurm.slurm.clusters import SlurmCluster
from kubeslurm.slurm.errors import SlurmError

# Workers that do not follow within this time are named, and waited for no longer.
WORKERS_DEADLINE = 10.0
QUESTION_DEADLINE = 3.0


class Course(msgspec.Struct):
    """How far the delivery of one configuration to one pod has come in this process."""

    digest: str
    uid: str
    touched_at: float | None = None
    reconfigured_at: float | None = None
    attempts: int = 0
    read_at: float | None = None  # when slurmctld was first seen to have read it
    before: running.Running | None = None
    trouble: str = ""


class Arrival(msgspec.Struct, frozen=True):
    """Where the delivery stands after a pass: the step, what went wrong, when another look is worth it."""

    step: Delivery
    trouble: str = ""
    again: float | None = None


class Courier:
    """Delivers by touching the pod, which makes the kubelet refresh its files, and by a reconfigure."""

    def __init__(self, kube: Kube, events: Recorder, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._events = events
        self._clock = clock
        self._courses: dict[Key, Course] = {}

    async def deliver(
        self, controller: Controller, live: str, slurm_conf: str, pod: Pod | None, slurm: SlurmCluster | None
    ) -> Arrival:
        """Takes the next step, if one is due."""
        if controller.spec.external:
            return Arrival(Delivery.DONE)
        if not live or not slurm_conf or pod is None:
            return Arrival(Delivery.AWAIT_POD)
        course = self._course(controller, live, pod)
        reachable = slurm is not None and slurm.snapshot.fresh()
        proven = slurm is not None and reachable and await self._proven(slurm, course, slurm_conf)
        progress = decide.Progress(
            since_touch=self._since(course.touched_at),
            since_reconfigure=self._since(course.reconfigured_at),
            attempts=course.attempts,
            read=course.read_at is not None,
            proven=proven,
        )
        step = decide.deliver(live, _facts(pod), controller.status.configHash, progress, reachable=reachable)
        match step:
            case Delivery.TOUCH:
                await self._annotate(pod, names.CONFIG_DELIVERED, live)
                course.touched_at = self._clock()
            case Delivery.RECONFIGURE if slurm is not None:
                await self._reconfigure(slurm, course)
            case Delivery.RECORD:
                await self._annotate(pod, names.CONFIG_RUNNING, live)
                self._tell(controller, course, slurm)
                step = Delivery.DONE
        return Arrival(step, course.trouble, self._again(course, step))

    async def refresh(self, pod: Pod) -> None:
        """Makes the kubelet write the files anew, after an edit of the ConfigMap was undone."""
        await self._annotate(pod, names.CONFIG_REFRESHED, datetime.now(UTC).isoformat(timespec="seconds"))

    def forget(self, key: Key) -> None:
        self._courses.pop(key, None)

    def _course(self, controller: Controller, live: str, pod: Pod) -> Course:
        key = Key(*controller.key)
        course = self._courses.get(key)
        if course is None or (course.digest, course.uid) != (live, pod.metadata.uid):
            course = self._courses[key] = Course(digest=live, uid=pod.metadata.uid)
        return course

    async def _reconfigure(self, slurm: SlurmCluster, course: Course) -> None:
        try:
            # Asked first because it answers at once or not at all; a reconfigure of a large cluster takes its time.
            async with asyncio.timeout(QUESTION_DEADLINE):
                course.before = running.Running.of(await slurm.client.conf())
            await slurm.client.reconfigure()
            course.trouble = ""
        except (SlurmError, TimeoutError) as error:
            # A foreground slurmctld may drop the connection while it re-reads its files; the proof decides.
            course.trouble = str(error) or "slurmrestd does not answer"
        course.reconfigured_at = self._clock()
        course.attempts += 1

    async def _proven(self, slurm: SlurmCluster, course: Course, slurm_conf: str) -> bool:
        """Whether slurmctld has read these files, and the workers have followed or had their time to."""
        if course.reconfigured_at is None:
            return False
        try:
            async with asyncio.timeout(QUESTION_DEADLINE):
                now = running.Running.of(await slurm.client.conf())
                if now is None:
                    return any(ping.responding for ping in await slurm.client.ping())
        except (SlurmError, TimeoutError):
            return False
        if course.read_at is None and not running.has_read(conf.checksum(slurm_conf), course.before, now):
            return False
        # From here on only workers are waited for: another reconfigure would restart them all for the sake of one.
        course.read_at = self._clock() if course.read_at is None else course.read_at
        late = running.laggards(slurm.snapshot.store, now.read_at)
        if late and self._clock() - course.read_at < WORKERS_DEADLINE:
            return False
        course.trouble = f"workers that did not take it over: {', '.join(late[:10])}" if late else ""
        return True

    def _tell(self, controller: Controller, course: Course, slurm: SlurmCluster | None) -> None:
        count = len(slurm.snapshot.store) if slurm else 0
        self._events.normal(
            controller, Event.CONFIG_RUNNING, f"slurmctld and its {count} nodes run with configuration {course.digest}"
        )
        if course.trouble:
            self._events.warning(controller, Event.WORKERS_NOT_RECONFIGURED, course.trouble)

    async def _annotate(self, pod: Pod, name: str, value: str) -> None:
        await self._kube.patch(POD, Key(pod.namespace, pod.name), {"metadata": {"annotations": {name: value}}})

    def _since(self, moment: float | None) -> float | None:
        return None if moment is None else self._clock() - moment

    def _again(self, course: Course, step: Delivery) -> float | None:
        match step:
            case Delivery.TOUCH | Delivery.AWAIT_MOUNT:
                return max(decide.MOUNT_DELAY - (self._since(course.touched_at) or 0.0), 0.02)
            case Delivery.RECONFIGURE | Delivery.AWAIT_PROOF:
                return 0.2
            case Delivery.AWAIT_SLURM:
                return 1.0
        return None


def _facts(pod: Pod) -> decide.Pod:
    status = pod.container_status(names.SLURMCTLD)
    return decide.Pod(
        started=bool(status and status.state.running and status.started and not pod.deleting),
        touched=pod.metadata.annotations.get(names.CONFIG_DELIVERED, ""),
        applied=pod.metadata.annotations.get(names.CONFIG_RUNNING, ""),
    )
