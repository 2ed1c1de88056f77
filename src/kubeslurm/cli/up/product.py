"""The whole product on one Kubernetes cluster: images, charts, and the first job."""

import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import msgspec

from kubeslurm.api.kinds import SLURM_KINDS
from kubeslurm.api.meta import Tree
from kubeslurm.cli.up import first_job, helm, other_operators, recipes, releases
from kubeslurm.cli.up.helm import Access, Release
from kubeslurm.cli.up.login import Desk, desk_of_context
from kubeslurm.local.cluster import nodespec
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.local.cluster.nodespec import NodeSpec
from kubeslurm.local.errors import LocalError
from kubeslurm.local.host import doctor
from kubeslurm.local.host.progress import Progress
from kubeslurm.local.host.tasks import Tasks

# Waiting for the condition by its name fails when kubectl is so early that the kind has no conditions yet.
ESTABLISHED = '--for=jsonpath={.status.conditions[?(@.type=="Established")].status}=True'


def access_to(cluster: Cluster) -> Access:
    """How to reach a cluster of this machine."""
    return Access(tuple(cluster.kubectl_command()), (f"--kubeconfig={cluster.kubeconfig}",))


def save_jobs(cluster: Cluster) -> None:
    """Ends slurmctld in order: it writes its news only every few seconds, and clusters are switched off in one."""
    where = (f"--namespace={releases.SLURM_NAMESPACE}", f"{releases.SLURM}-controller-0", "--container=slurmctld")
    with suppress(LocalError):  # there is none; or it has ended, and its container took the command along
        access_to(cluster).run("exec", "--request-timeout=60s", *where, "--", "sh", "-c", "kill -TERM 1; sleep 60")


class FirstJob(msgspec.Struct, frozen=True):
    """What the first job said, on how many workers it ran, and how to log in, where one can."""

    workers: int
    output: str
    login: str = ""
    recorded: bool = False


class Product(msgspec.Struct, frozen=True):
    """Where the product is installed; `tags` name images of our own build, and without them published ones are used."""

    access: Access
    tags: dict[str, str] = {}
    started: bool = False
    desk: Desk | None = None
    registry: str = ""

    @classmethod
    def local(cls, name: str, nodes: int | None, progress: Progress) -> "Product":
        """On a cluster of this machine, started if need be, with our images in its registry."""
        cluster = Cluster(name)
        doctor.require(progress)
        wanted = nodespec.nodes(nodes, []) if nodes is not None else None
        started, tags = _start_and_build(cluster, wanted, progress)
        with progress.step("push images"):
            recipes.push(tags, cluster)
        desk = Desk(cluster.home.path / "login", cluster.spec.address)
        return cls(access_to(cluster), tags, started, desk)

    @classmethod
    def remote(cls, context: str, registry: str = "") -> "Product":
        """On the cluster of a kubeconfig's context, unless somebody else's operator works there."""
        kubectl = shutil.which("kubectl")
        if kubectl is None:
            raise LocalError("There is no kubectl.", "Install it; its kubeconfig is how a context is found.")
        access = Access((kubectl, f"--context={context}"), (f"--kube-context={context}",))
        ours = (releases.OPERATOR_NAMESPACE, releases.OPERATOR) in helm.installed(access)
        other_operators.refuse(access, ours)
        return cls(access, desk=desk_of_context(context), registry=registry)

    def install(self, extra: Tree, progress: Progress) -> bool:
        """Installs or upgrades what is not as wanted; says whether anything was."""
        present = helm.installed(self.access)
        changed = _define_kinds(self.access, present)
        for release, wait in self._order(extra):
            if present.get((release.namespace, release.name)) == release.mark:
                continue
            with progress.step(f"install {release.name}"):
                helm.install(self.access, release, wait=wait)
            changed = True
        return changed

    def uninstall(self, *, purge: bool) -> None:
        """Takes Slurm and the operator away; volumes and the kinds only when told to."""
        helm.uninstall(self.access, releases.SLURM, releases.SLURM_NAMESPACE)
        helm.uninstall(self.access, releases.OPERATOR, releases.OPERATOR_NAMESPACE)
        if purge:
            helm.uninstall(self.access, releases.CRDS, releases.OPERATOR_NAMESPACE)
            claims = "--selector=app.kubernetes.io/name in (slurmctld,mariadb)"
            self.access.run("delete", "persistentvolumeclaims", claims, f"--namespace={releases.SLURM_NAMESPACE}")
            if self.desk is not None:
                self.desk.clear()

    def first_job(self, progress: Progress) -> FirstJob:
        """Waits for the workers and runs a job on all of them."""
        with progress.step("wait for the workers") as step:
            workers, output = first_job.run(self.access, step)
        return FirstJob(workers, output, recorded=first_job.keeps_records(self.access))

    def way_in(self, job: FirstJob, progress: Progress) -> FirstJob:
        """Waits until users can log in, and adds the command that does it."""
        with progress.step("wait for the login pod") as step:
            if not first_job.wait_for_login(self.access, step) or self.desk is None:
                return job
            command = self.desk.open(self.access)
            first_job.until(step, "the login pod to answer", self.desk.lets_in)
        return msgspec.structs.replace(job, login=command)

    def _order(self, extra: Tree) -> list[tuple[Release, bool]]:
        """What to install one after the other, and whether to wait for it.

        Into a cluster of our own Slurm's objects go before the operator: its admission server would make them wait.
        """
        operator, slurm = releases.operator(self.tags, self.registry), self._slurm(extra)
        return [(slurm, False), (operator, False)] if self.started else [(operator, True), (slurm, False)]

    def _slurm(self, extra: Tree) -> Release:
        trial: Tree = {}
        if self.desk is not None:
            # Two workers never share a node.
            nodes = len(self.access.run("get", "nodes", "--output=name").split())
            workers = max(1, min(releases.WORKERS, nodes))
            trial = releases.trial(workers, self.desk.root_keys(), exposed=bool(self.desk.address))
        return releases.slurm(self.tags, releases.merged(trial, extra), self.registry)


def _start_and_build(cluster: Cluster, nodes: list[NodeSpec] | None, progress: Progress) -> tuple[bool, dict[str, str]]:
    """All at once; when one fails the others are called off, so that the reason is said at once."""
    tasks, called_off = Tasks(), Event()
    with ThreadPoolExecutor(max_workers=2) as pool:
        building = pool.submit(recipes.build, progress, tasks)
        defining = pool.submit(_define_early, cluster, called_off)
        try:
            started = cluster.up(nodes, progress=progress)
            tags = building.result()
            return defining.result() or started, tags
        except BaseException:
            called_off.set()
            tasks.stop()
            raise


def _define_early(cluster: Cluster, called_off: Event) -> bool:
    """Needs only the apiserver, which is there seconds before the nodes are."""
    while not (cluster.running and cluster.home.serving.exists()):
        if called_off.wait(0.05):
            return False
    access = access_to(cluster)
    return _define_kinds(access, helm.installed(access))


def _define_kinds(access: Access, present: Mapping[tuple[str, str], str]) -> bool:
    """Installs our kinds unless they are as wanted, and waits until they are served; says whether it had to."""
    release = releases.crds()
    if present.get((release.namespace, release.name)) == release.mark:
        return False
    helm.install(access, release)
    kinds = [f"crd/{kind.plural}.{kind.group}" for kind in SLURM_KINDS]
    access.run("wait", ESTABLISHED, "--timeout=60s", *kinds)
    return True
