"""LoginSet: keeps the login pods of one cluster, their host keys and their address as declared."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, DEPLOYMENT, LOGINSET, POD, SECRET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.api.views import Pod, Secret
from kubeslurm.build.common import digest
from kubeslurm.build.login import ssh
from kubeslurm.build.login.deployment import SSSD_CONF, deployment, requested
from kubeslurm.build.login.service import service
from kubeslurm.control import key_change, references, refusals, status, workloads
from kubeslurm.control.registration import Context, Index
from kubeslurm.decide.missing import Missing
from kubeslurm.engine.controller import Requeue, Retry
from kubeslurm.engine.key import Key
from kubeslurm.kube import logs
from kubeslurm.kube.errors import NotFound
from kubeslurm.reconcile.loginset import host_keys
from kubeslurm.report import loginset as report
from kubeslurm.report.events import Event
from kubeslurm.report.loginset import Facts

# Login pods log every few seconds that their directory does not answer: how far back counts, and how often it is read.
RECENT_SECONDS = 30
PAUSE = 10.0
READ_PODS = 5


def loginset_of(pod: Pod) -> tuple[str, ...]:
    """The LoginSet that a pod belongs to, by its labels: the ReplicaSet between them is not watched."""
    labels = pod.metadata.labels
    if labels.get(names.LABEL_NAME) != names.LOGIN:
        return ()
    return (str(Key(pod.namespace, labels.get(names.LABEL_INSTANCE, ""))),)


PODS_BY_LOGINSET = Index(POD, "loginset", loginset_of)


class LoginSetReconciler:
    """One pass: observe, make the host keys if there are none, apply the rest, report."""

    def __init__(self, context: Context) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.events = context.events
        self.domain = context.options.cluster_domain

    async def reconcile(self, key: Key) -> Requeue | None:
        loginset = self.caches.store(LOGINSET).get(key)
        if loginset is None or loginset.deleting:
            return None  # nothing of it outlives it: Kubernetes removes the children

        facts = await self.observe(loginset)
        rejected = None
        if facts.controller is not None and not facts.missing:
            rejected = await refusals.rejection(self.apply(loginset, facts.controller, facts), names.LOGIN)
        with suppress(NotFound):  # no finalizer holds it: it may go at any moment
            await status.write(self.kube, LOGINSET, loginset, report.status(loginset, facts, rejected))
        return Requeue(after=PAUSE) if facts.pods else refusals.again(rejected)

    async def observe(self, loginset: LoginSet) -> Facts:
        key = Key(*loginset.key)
        controller = self.caches.store(CONTROLLER).get(Key(*loginset.controller_key))
        pods = tuple(PODS_BY_LOGINSET.get(self.caches, key))
        return Facts(
            now=datetime.now(UTC),
            controller=controller,
            missing=tuple(self._missing(loginset, controller)),
            deployment=self.caches.store(DEPLOYMENT).get(key),
            pods=pods,
            logs=await self._logs(pods),
        )

    def _missing(self, loginset: LoginSet, controller: Controller | None) -> Iterable[Missing]:
        """What the pods need; one whose files are missing would only be retried ever more slowly."""
        if controller is None:
            yield Missing("Controller", *loginset.controller_key)
            return
        refs = {
            "slurmKeyRef of the Controller": controller.spec.slurmKeyRef,
            "sssdConfRef": loginset.spec.sssdConfRef,
        }
        for field, ref in refs.items():
            yield from references.missing_key(self.caches, loginset.namespace, ref, field)

    async def apply(self, loginset: LoginSet, controller: Controller, facts: Facts) -> None:
        keys = await self._host_keys(loginset)
        await self.kube.apply(ssh.config(loginset))
        await self.kube.apply(service(loginset))
        hashes = self._hashes(loginset, controller, keys)
        if key_change.is_pending(self.caches, controller):
            hashes |= workloads.given(facts.deployment, names.SLURM_KEY_HASH)
        desired = deployment(loginset, controller, hashes, self.domain)
        asked = requested(loginset, controller, hashes)
        await workloads.keep(self.kube, self.events, loginset, desired, facts.deployment, asked)

    async def _host_keys(self, loginset: LoginSet) -> Secret:
        """The Secret with the host keys: made once, kept for good, because clients remember them."""
        key = Key(loginset.namespace, names.login_host_keys(loginset.name))
        found = self.caches.store(SECRET).get(key) or await self.kube.get(SECRET, key)
        if found is None:
            files = await asyncio.to_thread(host_keys.make)
            await self.kube.create(ssh.host_keys(loginset, files))  # AlreadyExists: somebody was faster, look again
            self.events.normal(loginset, Event.HOST_KEYS_CREATED, f"created the host keys in Secret {key.name}")
            found = await self.kube.get(SECRET, key)
        if found is None:
            raise Retry(f"Secret {key} went as soon as it was made")
        return found

    def _hashes(self, loginset: LoginSet, controller: Controller, keys: Secret) -> dict[str, str]:
        """Annotation -> hash of what login pods read only when they start."""
        users, namespace = loginset.spec.sssdConfRef, loginset.namespace
        slurm_key = references.secret(self.caches, namespace, controller.spec.slurmKeyRef)
        sssd = references.key_bytes(references.secret(self.caches, namespace, users), users) or b""
        files = {name: text.encode() for name, text in ssh.config_files(loginset).items()}
        return {
            names.SSH_HOST_KEYS_HASH: digest.of_values(references.data_of(keys)),
            names.SSHD_CONF_HASH: digest.of_values(files),
            names.SSSD_CONF_HASH: digest.of_values({SSSD_CONF: sssd}),
            names.SLURM_KEY_HASH: digest.of_values(references.data_of(slurm_key)),
        }

    async def _logs(self, pods: tuple[Pod, ...]) -> tuple[str, ...]:
        running = [pod for pod in pods if pod.status.phase == "Running" and not pod.deleting][:READ_PODS]
        reads = (logs.recent(self.kube, Key(*pod.key), names.LOGIN, seconds=RECENT_SECONDS) for pod in running)
        return tuple(await asyncio.gather(*reads))
