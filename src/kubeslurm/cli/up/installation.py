"""An installation of kubeslurm on one Kubernetes cluster: images, Helm releases, and the first job."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import first_job, helm, images, login, other_operators, releases, repair
from kubeslurm.cli.up.access import Access, context_access, local_access
from kubeslurm.cli.up.first_job import FirstJob
from kubeslurm.cli.up.helm import Release
from kubeslurm.cli.up.login import SshAccess
from kubeslurm.local.cluster import nodespec, recovery
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.cluster.nodespec import NodeSpec
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import doctor
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks


def stop_slurmctld(cluster: Cluster) -> None:
    """Stop slurmctld before the cluster is killed: it saves new jobs only every few seconds, and when it stops."""
    target = (f"--namespace={releases.SLURM_NAMESPACE}", f"{releases.SLURM}-controller-0", "--container=slurmctld")
    with suppress(LocalError):  # there is none, or the container ended and with it this command
        local_access(cluster).run("exec", "--request-timeout=60s", *target, "--", "sh", "-c", "kill -TERM 1; sleep 60")


class Installation(msgspec.Struct, frozen=True):
    """Where kubeslurm is installed. `tags` are those of locally built images; without them, published ones are used."""

    access: Access
    tags: dict[str, str] = {}
    on_this_machine: bool = False
    changed: bool = False  # already, before the releases are looked at
    started: float = 0.0  # when the cluster was started by this command; 0 if it was not
    ssh: SshAccess | None = None
    registry: str = ""

    @classmethod
    def local(cls, cluster: Cluster, nodes: int | None, progress: Progress) -> "Installation":
        """On a cluster of this machine: starts what does not run of it, and puts our images into its registry."""
        doctor.require(progress)
        specs = nodespec.nodes(nodes, []) if nodes is not None else None
        now = time.time()
        started, changed, tags = _start_and_build(cluster, specs, progress)
        recovered = not started and recovery.recover_nodes(cluster, progress)
        with progress.step("push images"):
            images.push(tags, cluster)
        ssh = SshAccess(cluster.home.path / "login", cluster.spec.address)
        return cls(
            local_access(cluster),
            tags,
            on_this_machine=True,
            changed=started or changed or recovered,
            started=now if started else 0.0,
            ssh=ssh,
        )

    @classmethod
    def remote(cls, context: str, registry: str = "") -> "Installation":
        """On the cluster of a kubeconfig context; raises if another operator is active there."""
        access = context_access(context)
        other_operators.refuse(access, helm.installed(access))
        return cls(access, ssh=login.for_context(context), registry=registry)

    def install(self, extra: Tree, progress: Progress) -> bool:
        """Install, upgrade or repair the releases that are not as they should be; returns whether there were any."""
        at = repair.Situation(self.access, alone=self.on_this_machine, settled=not self.started)
        changed = self.changed if self.on_this_machine else repair.ensure_crds(at, progress)
        records = helm.records(self.access)
        for release, wait in self._releases(extra, new=releases.operator(self.tags).key not in records):
            changed = repair.ensure(at, release, records.get(release.key), progress, wait=wait) or changed
        return changed

    def uninstall(self, *, purge: bool) -> None:
        """Remove Slurm and the operator; with `purge`, also the volumes, the CRDs and the ssh files."""
        helm.uninstall(self.access, releases.SLURM, releases.SLURM_NAMESPACE)
        helm.uninstall(self.access, releases.OPERATOR, releases.OPERATOR_NAMESPACE)
        if purge:
            helm.uninstall(self.access, releases.CRDS, releases.OPERATOR_NAMESPACE)
            claims = "--selector=app.kubernetes.io/name in (slurmctld,mariadb)"
            self.access.run("delete", "persistentvolumeclaims", claims, f"--namespace={releases.SLURM_NAMESPACE}")
            if self.ssh is not None:
                self.ssh.delete()

    def run_first_job(self, progress: Progress) -> FirstJob:
        """Wait for the workers and run a job on all of them."""
        with progress.step("wait for the workers") as step:
            job = first_job.run(self.access, step, since=self.started)
        return msgspec.structs.replace(job, accounting=first_job.has_accounting(self.access))

    def wait_for_login(self, job: FirstJob, progress: Progress) -> FirstJob:
        """Wait until users can log in, and add the command that logs in to the result."""
        with progress.step("wait for the login pod") as step:
            if not first_job.wait_for_login(self.access, step) or self.ssh is None:
                return job
            command = self.ssh.write_config(self.access)
            first_job.wait_until(step, "the login pod to answer", self.ssh.works)
        return msgspec.structs.replace(job, login=command)

    def _releases(self, extra: Tree, *, new: bool) -> list[tuple[Release, bool]]:
        """The releases in the order of their installation, and whether to wait until each is ready.

        On a new local cluster Slurm's objects come before the operator: its admission webhook would delay them.
        """
        operator, slurm = releases.operator(self.tags, self.registry), self._slurm(extra)
        if self.on_this_machine and new:
            return [(slurm, False), (operator, False)]
        return [(operator, True), (slurm, False)]

    def _slurm(self, extra: Tree) -> Release:
        trial: Tree = {}
        if self.ssh is not None:
            # Two workers never share a node.
            nodes = len(self.access.run("get", "nodes", "--output=name").split())
            workers = max(1, min(releases.WORKERS, nodes))
            trial = releases.trial_values(workers, self.ssh.authorized_keys(), exposed=bool(self.ssh.address))
        return releases.slurm(self.tags, releases.merge(trial, extra), self.registry)


def _start_and_build(
    cluster: Cluster, nodes: list[NodeSpec] | None, progress: Progress
) -> tuple[bool, bool, dict[str, str]]:
    """Start the cluster, build images and install the CRDs in parallel; the first failure stops the others.

    Returns whether the cluster was started, whether the CRDs were changed, and the tags of the images.
    """
    tasks, cancelled = Tasks(), Event()
    running = cluster.running
    with ThreadPoolExecutor(max_workers=2) as pool:
        tags = pool.submit(lambda: images.build(images.groups(), tasks=tasks, progress=progress))
        crds = pool.submit(_install_crds_early, cluster, running, progress, cancelled)
        try:
            started = cluster.up(nodes, progress=progress)
            built = tags.result()
            return started, crds.result(), built
        except BaseException:
            cancelled.set()
            tasks.stop()
            raise


def _install_crds_early(cluster: Cluster, running: bool, progress: Progress, cancelled: Event) -> bool:
    """Install the CRDs as soon as the API server serves, seconds before the nodes are ready."""
    while not (cluster.running and cluster.home.serving.exists() and cluster.home.kubeconfig.exists()):
        if cancelled.wait(0.05):
            return False
    return repair.ensure_crds(repair.Situation(local_access(cluster), alone=True, settled=running), progress)
