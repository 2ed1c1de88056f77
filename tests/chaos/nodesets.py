"""More NodeSets beside the first: with a partition of their own, in DaemonSet mode, deleted in every way."""

import itertools
import json
from typing import Any

from tests.chaos.stage import Stage
from tests.support.nodeset import Workers
from tests.support.slurm import NODESET
from tests.support.waiting import wait_for

POOL = "kubeslurm.test/chaos"
DAEMONS = "daemons"
MOST = 2
PATIENCE = 300.0  # seconds for workers that still run jobs


class NodeSetActs:
    """Acts on NodeSets that come and go; the first one stays."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.slurm = stage.slurm
        self.random = stage.random
        self.numbers = itertools.count(1)
        self.present: dict[str, Workers] = {}  # by the name of their partition, which their prefix gives
        self.orphaned: dict[str, dict[str, Any]] = {}  # what the NodeSet of orphaned workers was

    def create(self) -> None:
        """A NodeSet with a partition, or one that follows the nodes of a pool."""
        if len(self.present) >= MOST:
            return
        free = DAEMONS not in self.orphaned and self.slurm.find(NODESET, DAEMONS) is None
        if free and self.random.random() < 0.5:
            pod = {"nodeSelector": {POOL: "yes"}}
            mode = {"scalingMode": "DaemonSet", "pruneSlurmNodeRecords": "NodeNotFound", "pod": pod}
            self._create(DAEMONS, **mode)
            self.join_pool()
            return
        self._create(f"x{next(self.numbers)}", replicas=self.random.randint(1, 2))

    def _create(self, name: str, **changes: Any) -> None:
        self.stage.say(f"  {name}")
        partition = {"enabled": True, "config": "MaxTime=UNLIMITED"}
        self.present[name] = Workers.create(
            self.slurm, name, f"{name}-", partition=partition, oversubscribeNode=True, **changes
        )

    def submit(self) -> None:
        """A job for the partition of such a NodeSet, once slurmctld knows it."""
        known = self.slurm.run("sinfo", "--noheader", "--format=%R", check=False).split()
        if names := [name for name in sorted(self.present) if name in known and self._has_partition(name)]:
            name, seconds = self.random.choice(names), self.random.randint(5, 20)
            self.stage.say(f"  job {self.stage.jobs.submit(seconds, 1, name)}: {seconds} s in {name}")

    def switch_partition(self) -> None:
        """Off while jobs run in it, and on again."""
        if name := self._unused():
            wanted = not self._has_partition(name)
            self.stage.say(f"  {name} {'on' if wanted else 'off'}")
            self.present[name].change({"partition": {"enabled": wanted}})

    def delete(self) -> None:
        """While jobs run on it."""
        if name := self._unused():
            cascade = self.random.choice(("background", "foreground"))
            self.stage.say(f"  {name} in the {cascade}")
            del self.present[name]
            self.slurm.kubectl("delete", NODESET, name, f"--cascade={cascade}", "--wait=false")

    def orphan(self) -> None:
        """The NodeSet goes, its workers and their jobs stay."""
        if name := self._unused():
            self.stage.say(f"  {name}")
            tree = self.slurm.get(NODESET, name)
            kept = {"name": name, "namespace": self.slurm.namespace}
            self.orphaned[name] = {key: tree[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": kept}
            del self.present[name]
            self.slurm.kubectl("delete", NODESET, name, "--cascade=orphan", "--wait=false")

    def adopt(self) -> None:
        """A NodeSet of the same name takes the orphaned workers."""
        for name in sorted(self.orphaned):
            if self.slurm.find(NODESET, name) is None:
                self.stage.say(f"  {name}")
                self.slurm.kubectl("apply", "--filename=-", stdin=json.dumps(self.orphaned.pop(name)))
                self.present[name] = Workers(self.slurm, name)

    def join_pool(self) -> None:
        self.stage.kubectl("label", "node", self.random.choice(self.stage.hosts()), f"{POOL}=yes", "--overwrite")

    def leave_pool(self) -> None:
        self.stage.kubectl("label", "node", self.random.choice(self.stage.hosts()), f"{POOL}-")

    def rest(self) -> None:
        """The jobs that wait for such a NodeSet get its workers."""
        wait_for("orphaned workers to be adopted", self._all_adopted, within=PATIENCE, every=0.5)
        for name in self.present:
            self.present[name].change({"partition": {"enabled": True}})
        if DAEMONS in self.present:
            self.join_pool()

    def leave(self) -> None:
        """Deletes all of them; every job is over by now."""
        for name in sorted(self.present):
            self.slurm.kubectl("delete", NODESET, name, "--wait=false")
        self.present.clear()
        wait_for(
            "the other NodeSets to be gone", lambda: len(self.slurm.items(NODESET)) == 1, within=PATIENCE, every=0.5
        )
        self.stage.kubectl("label", "nodes", "--all", f"{POOL}-")

    def _all_adopted(self) -> bool:
        self.adopt()
        return not self.orphaned

    def _has_partition(self, name: str) -> bool:
        enabled: bool = self.slurm.get(NODESET, name)["spec"]["partition"]["enabled"]
        return enabled

    def _unused(self) -> str:
        """One for which no job waits: a job that has not started loses its partition, and that is the user's will."""
        free = [name for name in sorted(self.present) if not self.stage.jobs.waiting(name)]
        return self.random.choice(free) if free else ""
