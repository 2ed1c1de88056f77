"""LoginSet: keeps the login pods of one cluster, their host keys and their address as declared."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER, DEPLOYMENT, LOGINSET, POD, SECRET
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.slinky.loginset import LoginSet
from kubeslurm.api.views import Pod, Secret
from kubeslurm.build.common import digest
from kubeslurm.build.login import ssh
from kubeslurm.build.login.deployment import SSSD_CONF, deployment
from kubeslurm.build.login.service import service
from kubeslurm.control import references, refusals, status, workloads
from kubeslurm.control.registration import Context, Index
from kubeslurm.engine.controller import Requeue, Retry
from kubeslurm.engine.key import Key
from kubeslurm.kube import logs
from kubeslurm.kube.errors import NotFound
from kubeslurm.reconcile.loginset import host_keys
from kubeslurm.report import loginset as report
from kubeslurm.report.conditions import Finding, controller_not_found, degraded
from kubeslurm.report.events import Event
from kubeslurm.report.reasons import Reason

# Login pods say every few seconds when their directory is away; that is how far back counts, and how often we look.
MEMORY = 30
PAUSE = 10.0
ASKED_PODS = 5


def loginset_of(pod: Pod) -> tuple[str, ...]:
    """The LoginSet that a pod belongs to, by its labels: the ReplicaSet between them is not watched."""
    labels = pod.metadata.labels
    if labels.get(names.LABEL_NAME) != names.LOGIN:
        return ()
    return (str(Key(pod.namespace, labels.get(names.LABEL_INSTANCE, ""))),)


PODS_BY_LOGINSET = Index(POD, "loginset", loginset_of)


class LoginSetReconciler:
    """One pass: look, make the host keys if there are none, apply the rest, report."""

    def __init__(self, context: Context) -> None:
        self.kube = context.kube
        self.caches = context.caches
        self.events = context.events
        self.domain = context.options.cluster_domain

    async def reconcile(self, key: Key) -> Requeue | None:
        loginset = self.caches.store(LOGINSET).get(key)
        if loginset is None or loginset.deleting:
            return None  # nothing of it outlives it: Kubernetes removes the children

        controller = self.caches.store(CONTROLLER).get(Key(*loginset.controller_key))
        blocked = self._blocked(loginset, controller)
        refused = None
        if blocked is None and controller is not None:
            refused = await refusals.finding(self._apply(loginset, controller), names.LOGIN)

        pods = tuple(PODS_BY_LOGINSET.get(self.caches, key))
        seen = report.Seen(
            blocked=blocked or refused,
            deployment=self.caches.store(DEPLOYMENT).get(key),
            pods=pods,
            logs=await self._logs(pods),
            now=datetime.now(UTC),
        )
        with suppress(NotFound):  # no finalizer holds it: it may go at any moment
            await status.write(self.kube, LOGINSET, loginset, report.status(loginset, seen))
        return Requeue(after=PAUSE) if pods else refusals.again(refused)

    def _blocked(self, loginset: LoginSet, controller: Controller | None) -> Finding | None:
        """What keeps the pods from being made; a pod whose files are missing would only be retried ever more slowly."""
        if controller is None:
            return controller_not_found(loginset.spec.controllerRef.name)
        refs = (
            ("slurmKeyRef of the Controller", controller.spec.slurmKeyRef),
            ("sssdConfRef", loginset.spec.sssdConfRef),
        )
        for field, ref in refs:
            found = references.secret(self.caches, loginset.namespace, ref)
            if references.key_bytes(found, ref) is None:
                return degraded(Reason.SECRET_KEY_NOT_FOUND, references.missing_key(loginset.namespace, ref, field))
        return None

    async def _apply(self, loginset: LoginSet, controller: Controller) -> None:
        keys = await self._host_keys(loginset)
        await self.kube.apply(ssh.config(loginset))
        await self.kube.apply(service(loginset))
        desired = deployment(loginset, controller, self._hashes(loginset, controller, keys), self.domain)
        current = self.caches.store(DEPLOYMENT).get(Key(*loginset.key))
        await workloads.keep(self.kube, self.events, loginset, desired, current)

    async def _host_keys(self, loginset: LoginSet) -> Secret:
        """The Secret with the host keys: made once, kept for good, because clients remember them."""
        key = Key(loginset.namespace, names.login_host_keys(loginset.name))
        found = self.caches.store(SECRET).get(key) or await self.kube.get(SECRET, key)
        if found is None:
            files = await asyncio.to_thread(host_keys.make)
            await self.kube.create(ssh.host_keys(loginset, files))  # AlreadyExists: somebody was faster, look again
            self.events.normal(loginset, Event.HOST_KEYS_CREATED, f"made the host keys in Secret {key.name}")
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
        running = [pod for pod in pods if pod.status.phase == "Running" and not pod.deleting][:ASKED_PODS]
        asked = (logs.recent(self.kube, Key(*pod.key), names.LOGIN, seconds=MEMORY) for pod in running)
        return tuple(await asyncio.gather(*asked))
