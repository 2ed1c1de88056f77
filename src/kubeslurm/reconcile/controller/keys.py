"""Makes the keys of a cluster that nobody has made, once, and keeps a copy of those that it runs with."""

import secrets
from collections.abc import Iterable
from contextlib import suppress
from itertools import groupby

from kubeslurm.api import names
from kubeslurm.api.kinds import ACCOUNTING, CONTROLLER, SECRET, STATEFULSET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.fragments import SecretKeySelector
from kubeslurm.build.controller import secret as build
from kubeslurm.control import key_change, references, second_owner
from kubeslurm.control.registration import Context
from kubeslurm.decide.keys import KeyFacts, is_made
from kubeslurm.engine.key import Key
from kubeslurm.kube.caches import Caches
from kubeslurm.kube.errors import AlreadyExists
from kubeslurm.report.events import Event

# Bytes of randomness; written as text, because keys are copied by hand and through tools that stop at a zero byte.
SIZE = 768
_MARKS = {names.SLURM_KEY_FILE: names.MAKE_SLURM_KEY, names.JWT_KEY_FILE: names.MAKE_JWT_KEY}


class Keys:
    """Creates Secrets and never changes one: a key that exists belongs to whoever made it."""

    def __init__(self, context: Context) -> None:
        self._kube = context.kube
        self._caches = context.caches
        self._events = context.events

    async def make(self, controller: Controller) -> None:
        """Makes the Secrets that are missing; a pass that follows finds them in the store already."""
        if controller.deleting or not _is_for_us(self._caches, controller):
            return
        facts = sorted(_facts(self._caches, controller), key=lambda each: each.ref.name)
        for name, group in groupby(facts, key=lambda each: each.ref.name):
            found = list(group)
            if all(is_made(each) for each in found):
                await self._create(controller, name, found)

    async def keep(self, controller: Controller) -> None:
        """Copies the keys that the cluster runs with; while one is missing or another one waits the copy stays."""
        refs = _refs(controller)
        files = {
            file: references.key_bytes(references.secret(self._caches, controller.namespace, ref), ref)
            for file, ref in refs.items()
        }
        present = {file: content for file, content in files.items() if content}
        if controller.deleting or not present or len(present) < len(refs):
            return
        if not key_change.is_pending(self._caches, controller):
            tree = build.kept_keys(controller, present)
            await self._kube.apply(second_owner.added(self._caches, Key(*controller.key), tree))

    async def _create(self, controller: Controller, name: str, keys: list[KeyFacts]) -> None:
        files = {each.ref.key: each.kept or secrets.token_urlsafe(SIZE).encode() for each in keys}
        with suppress(AlreadyExists):  # somebody was faster, and that key counts
            await self._kube.create(build.keys(controller, name, files))
            act = "put back" if all(each.kept for each in keys) else "made"
            self._events.normal(controller, Event.KEYS_CREATED, f"{act} Secret {name} with {', '.join(files)}")


def _facts(caches: Caches, controller: Controller) -> Iterable[KeyFacts]:
    namespace = controller.namespace
    copy = references.data_of(caches.store(SECRET).get(Key(namespace, names.kept_keys(controller.name))))
    for file, ref in _refs(controller).items():
        yield KeyFacts(
            ref=ref,
            provided=controller.metadata.annotations.get(_MARKS[file]) == "false",
            secret_exists=references.secret(caches, namespace, ref) is not None,
            in_use=_is_in_use(caches, namespace, ref.name),
            kept=copy.get(file) or None,
        )


def _refs(controller: Controller) -> dict[str, SecretKeySelector]:
    refs = {names.SLURM_KEY_FILE: controller.spec.slurmKeyRef, names.JWT_KEY_FILE: controller.spec.jwt_ref}
    return {file: ref for file, ref in refs.items() if ref is not None}


def _is_for_us(caches: Caches, controller: Controller) -> bool:
    """Whether both daemons are ours: a slurmctld or slurmdbd elsewhere has its key already."""
    ref = controller.spec.accountingRef
    if controller.spec.external or ref is None or not ref.name:
        return not controller.spec.external
    accounting = caches.store(ACCOUNTING).get(Key(controller.namespace, ref.name))
    return accounting is not None and not accounting.spec.external


def _is_in_use(caches: Caches, namespace: str, secret: str) -> bool:
    """Whether a slurmctld was started with this Secret, of whichever cluster in the namespace."""
    return any(
        Key(namespace, names.controller(each.name)) in caches.store(STATEFULSET)
        for each in caches.store(CONTROLLER)
        if each.namespace == namespace and secret in {ref.name for ref in _refs(each).values()}
    )
