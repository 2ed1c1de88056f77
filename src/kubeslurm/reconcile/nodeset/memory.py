"""What only this process knows of workers: slots that failed, when slurmd came up, since when its node is missing."""

from collections.abc import Callable, Iterable

from kubeslurm.api import views
from kubeslurm.decide.nodeset.worker import Worker
from kubeslurm.engine.cooldown import Cooldown
from kubeslurm.engine.key import Key
from kubeslurm.slurm.clusters import SlurmCluster

SLOT_COOLDOWN, LONGEST_SLOT_COOLDOWN = 1.0, 900.0  # seconds that a slot stays empty after its worker failed


class FailedSlots:
    """Cool-downs by the uid of the NodeSet and the name of the Slurm node."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._cooldown: Cooldown[tuple[str, str]] = Cooldown(clock, base=SLOT_COOLDOWN, limit=LONGEST_SLOT_COOLDOWN)

    def cooling_down(self, owner: str, workers: Iterable[Worker]) -> frozenset[str]:
        """Slurm names whose slot must stay as it is for now; a ready worker has ended its cool-down."""
        active = {name for uid, name in self._cooldown.active() if uid == owner}
        return frozenset(active - {worker.slurm_name for worker in workers if worker.ready}) if active else frozenset()

    def failed(self, owner: str, name: str) -> None:
        """The worker of a slot has failed: the next one waits, longer every time."""
        self._cooldown.back_off((owner, name))

    def recovered(self, owner: str, workers: Iterable[Worker]) -> None:
        """Forgets the failures of slots that have a ready worker."""
        if not len(self._cooldown):
            return
        for worker in workers:
            if worker.ready:
                self._cooldown.end((owner, worker.slurm_name))

    def forget(self, owner: str) -> None:
        """Drops what was remembered about a NodeSet that is over."""
        self._cooldown.forget(lambda slot: slot[0] == owner)


class Sightings:
    """Moments by the uid of a pod, with the slurmd container that they are about; dropped with the pod."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._started: dict[str, tuple[str, float]] = {}
        self._missing: dict[str, tuple[str, float]] = {}

    def on_pod(self, _key: Key, old: views.Pod | None, new: views.Pod | None) -> None:
        """Follows a change of a pod."""
        if new is None:
            if old is not None:
                self._started.pop(old.metadata.uid, None)
                self._missing.pop(old.metadata.uid, None)
            return
        if old is None or old.metadata.uid != new.metadata.uid:
            return  # a pod that is seen for the first time may have run for long
        slurmd = Worker(pod=new).container
        if slurmd and slurmd != Worker(pod=old).container:
            self._started[new.metadata.uid] = (slurmd, self._clock())

    def age(self, worker: Worker) -> float | None:
        """For how many seconds slurmd has run; None when it was there before it was watched."""
        slurmd, since = self._started.get(worker.pod.metadata.uid, ("", 0.0))
        return self._clock() - since if slurmd and slurmd == worker.container else None

    def absences(self, workers: Iterable[Worker], slurm: SlurmCluster | None) -> dict[str, int]:
        """Slurm node -> full lists in a row without it since it was first missed here: a kubelet's clock may be off."""
        now, found = self._clock(), {}
        for worker in workers:
            uid, slurmd = worker.pod.metadata.uid, worker.container
            if slurm is None or worker.node is not None or not slurmd:
                if self._missing:
                    self._missing.pop(uid, None)
                continue
            known = self._missing.get(uid)
            if known is None or known[0] != slurmd:
                known = self._missing[uid] = (slurmd, now)
            found[worker.slurm_name] = slurm.snapshot.absences(worker.slurm_name, since=known[1])
        return found
