"""The whole product on one Kubernetes cluster: images, charts, and the first job."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import msgspec

from kubeslurm.api.kinds import SLURM_KINDS
from kubeslurm.api.meta import Tree
from kubeslurm.cli import firstjob, helm, recipes, releases, rivals
from kubeslurm.cli.helm import Access, Release
from kubeslurm.local import doctor, nodespec
from kubeslurm.local.cluster import Cluster
from kubeslurm.local.errors import LocalError
from kubeslurm.local.progress import Progress


def access_to(cluster: Cluster) -> Access:
    """How to reach a cluster of this machine."""
    return Access(tuple(cluster.kubectl_command()), (f"--kubeconfig={cluster.kubeconfig}",))


class FirstJob(msgspec.Struct, frozen=True):
    """What the first job said, and on how many workers it ran."""

    workers: int
    output: str


class Product(msgspec.Struct, frozen=True):
    """Where the product is installed; `tags` name images of our own build, and without them published ones are used."""

    access: Access
    tags: dict[str, str] = {}
    started: bool = False

    @classmethod
    def local(cls, name: str, nodes: int | None, progress: Progress) -> "Product":
        """On a cluster of this machine, started if need be, with our images in its registry."""
        cluster = Cluster(name)
        doctor.require(progress)
        with ThreadPoolExecutor(max_workers=1) as pool:
            building = pool.submit(recipes.build, progress)
            wanted = nodespec.nodes(nodes, []) if nodes is not None else None
            started = cluster.up(wanted, progress=progress)
            tags = building.result()
        access = access_to(cluster)
        with ThreadPoolExecutor(max_workers=2) as pool, progress.step("push images"):
            pushing = pool.submit(recipes.push, tags, cluster)
            defined = _define_kinds(access)
            pushing.result()
        return cls(access, tags, started or defined)

    @classmethod
    def remote(cls, context: str) -> "Product":
        """On the cluster of a kubeconfig's context, unless somebody else's operator works there."""
        kubectl = shutil.which("kubectl")
        if kubectl is None:
            raise LocalError("There is no kubectl.", "Install it; its kubeconfig is how a context is found.")
        access = Access((kubectl, f"--context={context}"), (f"--kube-context={context}",))
        ours = (releases.OPERATOR_NAMESPACE, releases.OPERATOR) in helm.installed(access)
        rivals.refuse(access, ours)
        return cls(access)

    def install(self, extra: Tree, progress: Progress) -> bool:
        """Installs or upgrades what is not as wanted; says whether anything was."""
        changed = _define_kinds(self.access)
        present = helm.installed(self.access)
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
            claims = "--selector=app.kubernetes.io/name=slurmctld"
            self.access.run("delete", "persistentvolumeclaims", claims, f"--namespace={releases.SLURM_NAMESPACE}")

    def first_job(self, progress: Progress) -> FirstJob:
        """Waits for the workers and runs a job on all of them."""
        with progress.step("wait for the workers") as step:
            workers = firstjob.wait_for_workers(self.access, step)
        return FirstJob(workers, firstjob.srun(self.access, workers))

    def _order(self, extra: Tree) -> list[tuple[Release, bool]]:
        """What to install one after the other, and whether to wait for it.

        Into a cluster of our own Slurm's objects go before the operator: its admission server would make them wait.
        """
        operator, slurm = releases.operator(self.tags), releases.slurm(self.tags, extra)
        return [(slurm, False), (operator, False)] if self.started else [(operator, True), (slurm, False)]


def _define_kinds(access: Access) -> bool:
    """Installs our kinds unless they are as wanted, and waits until they are served; says whether it had to."""
    release = releases.crds()
    if helm.installed(access).get((release.namespace, release.name)) == release.mark:
        return False
    helm.install(access, release)
    kinds = [f"crd/{kind.plural}.{kind.group}" for kind in SLURM_KINDS]
    access.run("wait", "--for=condition=Established", "--timeout=60s", *kinds)
    return True
