"""A small Slurm cluster that tests of the client share, and jobs that run in it until they are ended."""

from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.models import Node
from tests.slurm.hosts import wait_for
from tests.slurm.lab import Lab, account, answers, idle

SCRIPT = "--wrap=touch /run/begun-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID} && exec sleep 3600"


class Cluster:
    """One running cluster that tests share."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.controller = lab.slurmctld()
        answers(self.controller)
        self.workers = {name: lab.slurmd(name) for name in ("n1", "n2")}
        self.rest = lab.slurmrestd()
        self.used = False
        idle(self.controller, "n1", "n2")

    def submit(self, *options: str, tasks: int = 1) -> int:
        """Starts a job, or the tasks of an array, on a node each, and waits until the scripts are at work there."""
        self.used = True
        job = self.controller.run("sbatch", "--parsable", "--exclusive", *options, "-o", "/dev/null", SCRIPT).strip()
        # Slurm says that a job runs before it has begun; a signal that comes in between is lost.
        wait_for(
            f"job {job} to run on {tasks} nodes",
            lambda: len(self.begun(job)) == tasks,
            story=lambda: account(self.controller),
        )
        return int(job)

    def submit_held(self, *options: str) -> int:
        """Submits a job that stays pending."""
        self.used = True
        return int(self.controller.run("sbatch", "--parsable", "--hold", *options, "-o", "/dev/null", SCRIPT))

    def begun(self, job: str) -> list[str]:
        """Names of the nodes on which the script has begun."""
        return [name for name, host in self.workers.items() if f"begun-{job}" in host.run("ls", "/run").split()]

    def quiet(self) -> None:
        """Ends every job and waits until the nodes are as they were."""

        def over() -> bool:
            self.controller.run("scancel", "--user=root")
            return not self.controller.run("squeue", "-h").strip()

        wait_for("no job", over, story=lambda: account(self.controller))
        self.controller.run("scontrol", "update", "nodename=n[1-2]", "state=undrain")
        idle(self.controller, "n1", "n2")
        self.used = False


async def read(client: SlurmClient, name: str) -> Node:
    node = await client.node(name)
    assert node is not None
    return node
