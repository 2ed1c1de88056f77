"""The workers of an end-to-end cluster, and jobs whose fate a test must know."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from tests.support.kubernetes import Kubernetes, run
from tests.support.places import of_slurmctld
from tests.support.slurm import NODESET, RESTAPI, Slurm
from tests.support.waiting import WITHIN, wait_for

NAME = "slurm-worker-worker"
OPERATOR_SELECTOR = "app.kubernetes.io/name=slurm-operator"
OVER = frozenset(
    {"COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT", "BOOT_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE"}
)


# Whoever does not listen yet ignores this signal, so that it can be sent until it is heard.
_WORK = """srun sh -c 'trap "kill \\$!; exit 0" URG; sleep {seconds} & wait'"""
_FORMAT = "--Format=JobID:20,SLUID:20,RestartCnt:10,State:20,NodeList:100"


class Fate(msgspec.Struct, frozen=True):
    """What became of a job; with the same `sluid` it is the same run of the same job, though ids may be used again."""

    state: str
    restarts: int
    nodes: str
    sluid: str = ""

    @classmethod
    def parse(cls, line: str) -> "Fate":
        """From a line of squeue."""
        _, sluid, restarts, state, *nodes = line.split()
        return cls(state, int(restarts), "".join(nodes), sluid)


class Workers:
    """One NodeSet, its pods and its Slurm nodes."""

    def __init__(self, slurm: Slurm, name: str = NAME) -> None:
        self.slurm = slurm
        self.name = name
        self.sluids: dict[int, str] = {}

    @classmethod
    def create(cls, slurm: Slurm, name: str, prefix: str, **changes: Any) -> "Workers":
        """A NodeSet like the first one, with the test's changes to its spec."""
        tree = slurm.get(NODESET, NAME)
        template = tree["spec"]["template"]
        pod = template.get("spec", {}) | {"hostname": prefix} | changes.pop("pod", {})
        spec = tree["spec"] | {"replicas": 1, "template": template | {"spec": pod}} | changes
        wanted = {
            "apiVersion": tree["apiVersion"],
            "kind": tree["kind"],
            "metadata": {"name": name, "namespace": slurm.namespace},
            "spec": spec,
        }
        slurm.kubectl("apply", "--filename=-", stdin=json.dumps(wanted))
        return cls(slurm, name)

    def delete(self) -> None:
        """Deletes the NodeSet and waits until it is gone, whatever its workers do."""
        self.slurm.kubectl("annotate", NODESET, self.name, "kubeslurm.dev/force-delete=true", check=False)
        self.slurm.kubectl("delete", NODESET, self.name, "--ignore-not-found", "--wait=true", "--timeout=180s")

    def scale(self, replicas: int) -> None:
        self.slurm.kubectl("scale", NODESET, self.name, f"--replicas={replicas}")

    def change(self, spec: dict[str, Any]) -> None:
        self.slurm.patch(NODESET, self.name, {"spec": spec})

    def pods(self) -> dict[str, dict[str, Any]]:
        """The pods by their Slurm node name."""
        found = self.slurm.items("pods", selector=f"app.kubernetes.io/instance={self.name}")
        return {pod["spec"]["hostname"]: pod for pod in found}

    def names(self) -> list[str]:
        """The Slurm nodes of the pods there are: which ones depends on what was scaled before."""
        return sorted(self.pods())

    def one(self) -> str:
        """Any worker: nothing is known of its number or its Kubernetes node."""
        return self.names()[0]

    def both(self) -> tuple[str, str]:
        """The workers of a NodeSet that has two: nothing is known of their numbers or their Kubernetes nodes."""
        first, second = self.names()
        return first, second

    def away_from_slurmctld(self) -> str:
        """A worker on another Kubernetes node than slurmctld, so that the node can be lost and Slurm still be asked."""
        taken = of_slurmctld(self.slurm)
        return next(name for name, pod in sorted(self.pods().items()) if node_of(pod) != taken)

    def change_template(self) -> None:
        """Changes what all workers shall be, to something that they are not."""
        before: str = self.slurm.get(NODESET, self.name)["spec"].get("extraConf", "")
        self.change({"extraConf": f"Weight={int(before.removeprefix('Weight=') or 1) + 1}"})

    def pod(self, node: str) -> dict[str, Any]:
        """The pod of a Slurm node, as soon as there is one: it may just be on its way back."""
        return wait_for(f"the pod of {node}", lambda: self.pods().get(node))

    def uid(self, node: str) -> str:
        return str(self.pod(node)["metadata"]["uid"])

    def uids(self) -> dict[str, str]:
        return {node: pod["metadata"]["uid"] for node, pod in self.pods().items()}

    def reasons(self) -> dict[str, str]:
        """Why each Slurm node is as it is."""
        text = self.slurm.run("sinfo", "--noheader", "--Node", "--format=%N|%E")
        return dict(line.split("|", 1) for line in text.splitlines())

    def wait_until_idle(self, count: int, *, within: float = WITHIN) -> None:
        self.slurm.wait_until_idle(count, within=within)
        wait_for(f"{count} pods", lambda: len(self.pods()) == count, within=within)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.slurm.get(NODESET, self.name).get("status", {})
        return found

    def message(self, condition: str) -> str:
        return self.slurm.conditions(NODESET, self.name).get(condition, {}).get("message", "")

    def run_job(self, seconds: int, *options: str) -> int:
        """A job that is running when this returns, for that long or until it is let end."""
        job = self.slurm.submit(_WORK.format(seconds=seconds), *options)
        self.slurm.wait_for_job(job, "RUNNING")
        self.sluids[job] = self.fate(job).sluid
        return job

    def fate(self, job: int) -> Fate:
        return Fate.parse(self.slurm.run("squeue", "--noheader", "--states=all", f"--jobs={job}", _FORMAT))

    def fates(self) -> dict[int, Fate]:
        """All jobs that slurmctld remembers; empty while it does not answer."""
        lines = self.slurm.run("squeue", "--noheader", "--states=all", _FORMAT, check=False).splitlines()
        return {int(line.split()[0]): Fate.parse(line) for line in lines if line[:1].isdigit()}

    def age(self, job: int) -> int:
        """Seconds that the job has run."""
        text = self.slurm.run("squeue", "--noheader", f"--jobs={job}", "--format=%M", check=False).strip() or "0:00"
        minutes, _, seconds = text.rpartition(":")
        return int(minutes.rpartition(":")[2] or 0) * 60 + int(seconds)

    def wait_for_end(self, job: int, *, within: float = WITHIN) -> Fate:
        """How the job ended, when it has."""
        return wait_for(
            f"job {job} to end", lambda: fate if (fate := self.fate(job)).state in OVER else None, within=within
        )

    def let_end(self, job: int) -> Fate:
        """Tells a job that its work is done; how it ended, when it has."""

        def ended() -> Fate | None:
            self.slurm.run("scancel", "--signal=URG", str(job), check=False)
            fate = self.fate(job)
            return fate if fate.state in OVER else None

        return wait_for(f"job {job} to end", ended)

    def release(self, job: int) -> None:
        """Sees a requeued job start again: Slurm holds it back for two minutes from when its remains are gone."""

        def started() -> bool:
            state = self.fate(job).state
            if state == "PENDING":
                self.slurm.run("scontrol", "update", f"jobid={job}", "starttime=now", check=False)
            return state not in ("PENDING", "COMPLETING", "REQUEUED")

        wait_for(f"job {job} to start again", started, within=240)

    def unharmed(self, job: int) -> None:
        """The job ran to its end, once, undisturbed."""
        fate = self.wait_for_end(job)
        assert (fate.state, fate.restarts, fate.sluid) == ("COMPLETED", 0, self.sluids[job])

    def finish(self, job: int) -> None:
        """Lets a job end that was undisturbed until now."""
        self.let_end(job)
        self.unharmed(job)

    def kill_operator(self) -> None:
        """SIGKILL: nothing is said, nothing is saved."""
        selector, now = f"--selector={OPERATOR_SELECTOR}", ("--grace-period=0", "--force", "--wait=false")
        text = self.slurm.cluster.kubectl("--namespace=slinky", "delete", "pod", selector, *now)
        assert "deleted" in text

    @contextmanager
    def without_slurmrestd(self) -> Iterator[None]:
        """Nobody can ask Slurm; Slurm itself goes on."""
        try:
            self.slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 0}})
            selector = "app.kubernetes.io/name=slurmrestd"
            wait_for("no slurmrestd", lambda: not self.slurm.items("pods", selector=selector))
            yield
        finally:
            self.slurm.patch(RESTAPI, "slurm", {"spec": {"replicas": 1}})


def leads(slurm: Slurm) -> bool:
    """Whether the one operator there is holds the Lease."""
    found = operators(slurm.cluster)
    lease = slurm.cluster.read("leases.coordination.k8s.io", "slinky", "slurm-operator") or {}
    holder = lease.get("spec", {}).get("holderIdentity") or ""
    return len(found) == 1 and holder.startswith(found[0])


def operators(cluster: Kubernetes) -> list[str]:
    """The names of the operator's pods."""
    found = cluster.read("pods", "slinky", selector=OPERATOR_SELECTOR) or {}
    return [pod["metadata"]["name"] for pod in found.get("items", ())]


def evict(slurm: Slurm, pod: str) -> str:
    """Asks for an eviction as `kubectl drain` does; why it was refused, empty when it was granted."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": slurm.namespace}}
    path = f"/api/v1/namespaces/{slurm.namespace}/pods/{pod}/eviction"
    done = run(slurm.cluster.kubectl_command("create", "--raw", path, "--filename=-"), stdin=json.dumps(body))
    return done.stderr if done.returncode else ""


def counted(slurm: Slurm) -> int:
    """How many busy workers the disruption budget knows of."""
    budget: Mapping[str, Any] = slurm.get("poddisruptionbudget", "slurm-workers-pdb-slurm")
    return int(budget["status"]["expectedPods"])


def node_of(pod: dict[str, Any]) -> str:
    """The Kubernetes node a pod runs on."""
    return str(pod["spec"]["nodeName"])


def is_protected(pod: dict[str, Any]) -> bool:
    """Whether the pod shows that it runs a job and must not be evicted."""
    return bool(pod["metadata"]["labels"].get("nodeset.slinky.slurm.net/pod-protect") == "true")


def states_of(pod: dict[str, Any]) -> set[str]:
    """What the pod's conditions say about its Slurm node."""
    prefix = "SlurmNodeState"
    return {
        each["type"].removeprefix(prefix) for each in pod["status"]["conditions"] if each["type"].startswith(prefix)
    }
