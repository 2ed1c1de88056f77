"""Decides which configuration is mounted: a wanted one is tried first, and only one that passed gets in."""

from collections.abc import Callable, Mapping

import msgspec

from kubeslurm.api import names
from kubeslurm.api.kinds import CONFIGMAP, POD
from kubeslurm.api.resource import Resource
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import ConfigMap
from kubeslurm.build.common import digest
from kubeslurm.build.controller import trial as build_trial
from kubeslurm.build.controller.config import SLURM_CONF, configmap
from kubeslurm.control import refusals
from kubeslurm.control.registration import Index
from kubeslurm.decide.config import stages as decide
from kubeslurm.decide.config.stages import Check, Trial, Verdict
from kubeslurm.decide.config.trial import explained, outcome
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.client import Kube
from kubeslurm.kube.errors import AlreadyExists
from kubeslurm.report.events import Event, Recorder
from kubeslurm.slurm import conf


def _tried_for(obj: Resource) -> tuple[str, ...]:
    owner = obj.metadata.labels.get(names.LABEL_TRIAL)
    return (str(Key(obj.namespace, owner)),) if owner else ()


PODS_BY_TRIAL = Index(POD, "trial", _tried_for)
CONFIGMAPS_BY_TRIAL = Index(CONFIGMAP, "trial", _tried_for)


class Mounted(msgspec.Struct, frozen=True):
    """The verdict on the wanted configuration, and which one is mounted now (digests)."""

    check: Check
    wanted: str
    live: str
    repaired: bool = False  # somebody had edited it
    pause: float | None = None  # until a trial that could not run is repeated


class ConfigGate:
    """The one way into slurmctld's /etc/slurm."""

    def __init__(self, kube: Kube, caches: Caches, events: Recorder, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._events = events
        self._clock = clock
        self._caches = caches
        self._pods = caches.store(POD)
        self._configmaps = caches.store(CONFIGMAP)
        self._untried: dict[Key, float] = {}
        self._good: dict[Key, Mapping[str, str]] = {}

    async def admit(self, controller: Controller, files: Mapping[str, str]) -> Mounted:
        """Tries the files if they are new, and mounts them if they passed."""
        wanted, live, edited = digest.of_files(files), self.live(controller), self._is_edited(controller)
        # What only slurmrestd reads needs no trial, and for a slurmctld elsewhere there is none of ours to try it.
        check = Check(Verdict.PROMOTE) if controller.spec.external else self._judge(controller, files, wanted, live)
        refused = ""
        match check.verdict:
            case Verdict.TRY:
                refused = await self._start_trial(controller, files, wanted)
            case Verdict.PROMOTE | Verdict.ACCEPTED:
                before = self.accepted(controller)
                await self._kube.apply(configmap(controller, files, wanted))
                if live != wanted:
                    self._tell(controller, wanted, conf.needs_restart(before, files) if before else [])
                live = wanted
            case Verdict.REFUSED:
                self._events.warning(controller, Event.CONFIG_REJECTED, check.message)
        if live != wanted and (good := self.accepted(controller)):
            await self._kube.apply(configmap(controller, good, live))
        await self._clear_trials(controller, self._kept_trial(controller, check, wanted))
        if refused:
            return Mounted(Check(Verdict.UNTRIED, refused), wanted, live, edited, refusals.PAUSE)
        return Mounted(check, wanted, live, edited, decide.TRIAL_PAUSE if check.verdict is Verdict.UNTRIED else None)

    def _tell(self, controller: Controller, wanted: str, restart: list[str]) -> None:
        self._events.normal(controller, Event.CONFIG_ACCEPTED, f"configuration {wanted} is accepted and live")
        if restart and not controller.spec.external:
            keys = ", ".join(restart)
            message = f"slurmctld is restarted: Slurm takes {keys} only at its start. Running jobs go on"
            self._events.normal(controller, Event.RESTARTING, message)

    def untouched(self, controller: Controller) -> Mounted:
        """What is mounted, when nothing can be said about what is wanted."""
        return Mounted(Check(Verdict.ACCEPTED), "", self.live(controller))

    def live(self, controller: Controller) -> str:
        """Digest of the configuration that was accepted last; empty while there is none."""
        found = self._mounted(controller)
        return found.metadata.annotations.get(names.CONFIG_DELIVERED) or digest.of_files(found.data) if found else ""

    def live_conf(self, controller: Controller) -> str:
        """The slurm.conf that was accepted last; empty when it is not known."""
        return self.accepted(controller).get(SLURM_CONF, "")

    def accepted(self, controller: Controller) -> Mapping[str, str]:
        """The files that were accepted last, also while somebody's edit of the ConfigMap is being undone."""
        key, found, live = Key(*controller.key), self._mounted(controller), self.live(controller)
        if found is not None and not self._is_edited(controller):
            self._good[key] = found.data
        good = self._good.get(key, {})
        return good if good and digest.of_files(good) == live else {}

    def _is_edited(self, controller: Controller) -> bool:
        found = self._mounted(controller)
        return found is not None and digest.of_files(found.data) != self.live(controller)

    def _mounted(self, controller: Controller) -> ConfigMap | None:
        return self._configmaps.get(Key(controller.namespace, names.config(controller.name)))

    def _judge(self, controller: Controller, files: Mapping[str, str], wanted: str, live: str) -> Check:
        pod = self._pods.get(Key(controller.namespace, names.config_trial(controller.name, wanted)))
        trial = outcome(pod, build_trial.CONTAINER)
        if trial is not None and trial.outcome == "refused":
            trial = Trial("refused", explained(trial.message, files))
        return decide.check(wanted, live, tuple(conf.lint(files)), trial)

    async def _start_trial(self, controller: Controller, files: Mapping[str, str], wanted: str) -> str:
        """Returns why there can be no trial, if so."""
        try:
            await self._kube.apply(build_trial.configmap(controller, files, wanted))
            await self._kube.create(build_trial.pod(controller, wanted))
        except AlreadyExists:
            return ""
        except refusals.REFUSED as error:
            return refusals.words(error, names.SLURMCTLD)
        return ""

    def _kept_trial(self, controller: Controller, check: Check, wanted: str) -> str:
        """The trial whose objects stay: one under way, or one that is the record of a refusal."""
        key = Key(*controller.key)
        if check.verdict is not Verdict.UNTRIED:
            self._untried.pop(key, None)
            return wanted if check.verdict in (Verdict.TRY, Verdict.TRYING, Verdict.REFUSED) else ""
        if self._clock() - self._untried.setdefault(key, self._clock()) < decide.TRIAL_PAUSE:
            return wanted
        self._untried.pop(key)
        return ""

    async def _clear_trials(self, controller: Controller, keep: str) -> None:
        kept = names.config_trial(controller.name, keep) if keep else ""
        owner = Key(*controller.key)
        for pod in PODS_BY_TRIAL.get(self._caches, owner):
            if pod.name != kept and not pod.deleting:
                await self._kube.delete(POD, Key(pod.namespace, pod.name), uid=pod.metadata.uid, grace=0)
        for found in CONFIGMAPS_BY_TRIAL.get(self._caches, owner):
            if found.name != kept:
                await self._kube.delete(CONFIGMAP, Key(found.namespace, found.name), uid=found.metadata.uid)
