"""Every job of a run under faults, and what has become of it: none may be hurt unless the driver answers for it."""

from collections.abc import Callable, Collection

from kubeslurm.local.errors import LocalError
from kubeslurm.slurm import hostlist
from tests.support.nodeset import OVER, Fate, Workers

# A job that is younger than this when its slurmd is lost may go unnoticed: clocks of two machines cannot tell.
OLD_ENOUGH = 8
EVERYWHERE = "all"  # the partition with all nodes
THERE = ("RUNNING", "SUSPENDED")


class Jobs:
    """The jobs that were submitted, by their ids."""

    def __init__(self, workers: Workers, say: Callable[[str], None], story: Callable[[str], str]) -> None:
        self.workers = workers
        self.slurm = workers.slurm
        self.say = say
        self.story = story
        self.fates: dict[int, Fate | None] = {}  # what is known; Slurm forgets a job some minutes after its end
        self.runs: dict[int, set[str]] = {}  # the names of each job's runs: it gets another one with every restart
        self.excused: dict[int, int] = {}  # restarts that the driver has to answer for
        self.partitions: dict[int, str] = {}

    def submit(self, seconds: int, nodes: int, partition: str = EVERYWHERE) -> int | None:
        """A new job; None when slurmctld does not take one now."""
        try:
            job = self.slurm.submit(f"srun sleep {seconds}", f"--nodes={nodes}", f"--partition={partition}")
        except LocalError:
            return None
        self.fates[job], self.runs[job], self.excused[job] = None, set(), 0
        self.partitions[job] = partition
        return job

    def waiting(self, partition: str = "") -> list[int]:
        """Those that have not started, or that nobody has seen yet."""
        return [
            job
            for job, fate in self.fates.items()
            if (fate is None or fate.state == "PENDING") and partition in ("", self.partitions[job])
        ]

    def in_state(self, *states: str) -> list[int]:
        return [job for job, fate in self.fates.items() if fate is not None and fate.state in states]

    def on(self, node: str) -> list[int]:
        """Those that are on a node, at work or suspended."""
        self.check()
        found = {job: self.fates[job] for job in self.in_state(*THERE)}
        return [job for job, fate in found.items() if fate and node in hostlist.expand(fate.nodes)]

    def is_old(self, job: int) -> bool:
        return self.workers.age(job) >= OLD_ENOUGH

    def excuse(self, but: Collection[int] = ()) -> None:
        """A worker was taken away: whichever job was there, or was just being started there, may be restarted."""
        for job in self.fates.keys() - set(but):
            self.excused[job] += 1

    def check(self) -> None:
        """No job was restarted, replaced or lost, unless the driver took its worker away."""
        for job, fate in self.workers.fates().items():
            if job not in self.fates:
                continue
            excused = self.excused[job]
            if fate != self.fates[job]:
                self.say(f"    job {job} is {fate.state} on {fate.nodes}, {fate.restarts} restarts of {excused}")
            self.fates[job] = fate
            self.runs[job].add(fate.sluid)
            # Slurm counts a restart and names the new run at different moments: each is checked by itself.
            runs = len(self.runs[job])
            assert runs <= 1 + excused, self.story(f"job {job} has run {runs} times, excused {excused}")
            assert fate.restarts <= excused, self.story(f"job {job} was restarted {fate.restarts} times, not {excused}")
            assert fate.state not in OVER - {"COMPLETED"}, self.story(f"job {job} is {fate.state}")

    def all_over(self) -> bool:
        """Whether every job has had its end; helps those along that nothing else would."""
        self.check()
        for job in self.in_state("SUSPENDED"):
            self.slurm.run("scontrol", "resume", str(job), check=False)
        for job in self.waiting():
            fate = self.fates[job]
            if fate is not None and fate.restarts:
                # Slurm holds a requeued job back for two minutes, and its own partition may be gone by now.
                change = (f"jobid={job}", "starttime=now", f"partition={EVERYWHERE}")
                self.slurm.run("scontrol", "update", *change, check=False)
        return all(fate is not None and fate.state in OVER for fate in self.fates.values())

    def unfinished(self) -> str:
        """Which jobs have not ended, and what Slurm says of them and of its nodes."""
        left = {job: fate for job, fate in self.fates.items() if fate is None or fate.state not in OVER}
        asked = (("squeue", "--all"), ("sinfo", "--long", "--Node"))
        return self.story("\n".join([f"{left}", *(self.slurm.run(*command, check=False) for command in asked)]))

    def lost(self) -> list[int]:
        return [job for job, fate in self.fates.items() if fate is None or fate.state != "COMPLETED"]
