from tests.support.settled import OBJECTS, statuses
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for


def test_srun_runs_on_every_worker(slurm: Slurm) -> None:
    assert slurm.hosts("--nodes=2") == sorted(slurm.nodes())


def test_srun_beside_slurmctld_waits_for_its_turn(slurm: Slurm) -> None:
    # slurmctld calls it back when there is room, at the address that it seemed to come from.
    job = slurm.submit("sleep 600", "--nodes=2", "--exclusive")
    slurm.wait_for_job(job, "RUNNING")
    with slurm.start("srun", "--nodes=1", "hostname") as waiting:
        wait_for("srun to wait", lambda: "PENDING" in slurm.run("squeue", "--noheader", "--format=%T"))
        slurm.run("scancel", str(job))
        said, _ = waiting.communicate()
    assert said.split()[-1] in slurm.nodes(), said


def test_a_batch_job_runs_to_its_end(slurm: Slurm) -> None:
    slurm.wait_for_job(slurm.submit("true"), "COMPLETED")


def test_a_job_is_kept_to_the_memory_it_asked_for(slurm: Slurm) -> None:
    job = slurm.submit("perl -e '$x = \"a\" x 400000000'", "--mem=100")
    slurm.wait_for_job(job, "OUT_OF_MEMORY")


def test_every_object_says_that_it_is_as_desired(slurm: Slurm) -> None:
    found = {each["kind"]: statuses(each) for kind in OBJECTS for each in slurm.items(kind)}
    assert {kind: (each["Ready"], each["Degraded"]) for kind, each in found.items()} == dict.fromkeys(
        ("Controller", "RestApi", "NodeSet", "Accounting", "LoginSet"), ("True", "False")
    )
