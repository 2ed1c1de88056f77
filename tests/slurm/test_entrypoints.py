"""The images' entry points with real daemons: nothing ends them but their owner."""

import contextlib
import re
from pathlib import Path

from tests.slurm.hosts import Host, wait_for
from tests.slurm.lab import CONF, Lab, account, answers, idle

MENDED = CONF + "MaxJobCount=5432\n"


def main_process(host: Host, name: str, *, after: int = 0) -> int:
    """The daemon once it is alone under its name; a process that takes over shares it for a moment."""

    def settled() -> int:
        found = host.processes(name)
        return found[0] if len(found) == 1 and found[0] != after else 0

    return wait_for(f"{name} to settle down", settled, story=host.evidence)


def text_of(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError):  # not there yet, or being replaced
        return path.read_text()
    return ""


def says(host: Host, words: str, times: int = 1) -> None:
    """Waits until the entry point has said something, so many times."""
    wait_for(f"the words {words!r}", lambda: host.output.read_text().count(words) >= times, story=host.evidence)


def test_slurmctld_outlives_its_own_death_and_every_reconfigure(lab: Lab) -> None:
    controller = lab.slurmctld()
    answers(controller)
    for times in (1, 2):
        before = main_process(controller, "slurmctld")
        controller.run("scontrol", "reconfigure")
        main_process(controller, "slurmctld", after=before)
        says(controller, "slurmctld: reconfigured", times)
        answers(controller)
    controller.run("kill", "-9", str(main_process(controller, "slurmctld")))
    says(controller, "starting it again")
    answers(controller)
    assert controller.terminate() == 0
    assert re.search("slurmctld: stopping", controller.output.read_text())


def test_slurmctld_comes_up_with_the_last_good_files_and_takes_the_mended_ones(lab: Lab) -> None:
    first = lab.slurmctld()
    answers(first)
    # The newest good configuration is the one to fall back to, not that of the start.
    lab.write("slurm.conf", CONF + "MaxJobCount=4321\n")
    first.run("scontrol", "reconfigure")
    good = lab.folder / "state" / "test" / "last-good-config"
    wait_for("the good files to be kept", lambda: "4321" in text_of(good / "slurm.conf"))
    assert not list(good.glob("*.key"))
    assert first.terminate() == 0

    lab.write("slurm.conf", CONF + "Bogus=1\n")
    second = lab.slurmctld()
    says(second, "last ones that worked")
    wait_for("slurmctld to run", lambda: second.processes("slurmctld"), story=second.evidence)

    lab.write("slurm.conf", MENDED)
    takes_mended_files(second)


def takes_mended_files(controller: Host) -> None:
    says(controller, "have changed; trying them")
    # Until it has ended, the one with the old files still answers.
    wait_for(
        "the mended files to be used",
        lambda: "5432" in controller.run("scontrol", "show", "config"),
        story=controller.evidence,
    )
    assert controller.terminate() == 0


# In place of slurmctld: the first start fails, but not before it is told to.
SLOW_FAILURE = """\
#!/bin/sh
[ -e /var/log/slurm/failed ] && exec /usr/sbin/slurmctld "$@"
touch /var/log/slurm/starting
until [ -e /var/log/slurm/failed ]; do sleep 0.05; done
exit 1
"""


def test_files_that_are_mended_while_slurmctld_fails_with_the_bad_ones_are_tried(lab: Lab, tmp_path: Path) -> None:
    first = lab.slurmctld()
    answers(first)
    assert first.terminate() == 0
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "slurmctld").write_text(SLOW_FAILURE)
    (programs / "slurmctld").chmod(0o755)
    lab.write("slurm.conf", CONF + "Bogus=1\n")
    path = {"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}
    second = lab.slurmctld(binds={"/usr/local/sbin": programs}, env=path)
    wait_for("slurmctld to be started", (lab.log / "starting").exists, story=second.evidence)
    lab.write("slurm.conf", MENDED)
    (lab.log / "failed").touch()
    takes_mended_files(second)


def test_slurmctld_that_never_worked_ends_with_the_reason(lab: Lab) -> None:
    lab.write("slurm.conf", CONF + "Bogus=1\n")
    controller = lab.slurmctld()
    wait_for("it to give up", lambda: controller.ended, story=controller.evidence)
    assert "unrecognized key: Bogus" in controller.output.read_text()


def test_a_job_survives_its_slurmd(lab: Lab) -> None:
    controller = lab.slurmctld()
    answers(controller)
    worker = lab.slurmd("n1")
    idle(controller, "n1")
    start_job(controller, worker)
    step = main_process(worker, "slurmstepd")
    began = slurmd_start(controller)
    worker.run("kill", "-9", str(main_process(worker, "slurmd")))
    says(worker, "slurmd: has ended")
    # One that has not registered yet would miss the call to reconfigure.
    wait_for("slurmd to come back", lambda: slurmd_start(controller) != began, story=worker.evidence)
    controller.run("scontrol", "reconfigure")
    says(worker, "slurmd: reconfigured")
    assert step in worker.processes("slurmstepd")
    assert controller.run("squeue", "-h", "-o", "%T").split() == ["RUNNING"]
    assert worker.terminate() == 0


def start_job(controller: Host, worker: Host) -> None:
    """Waits until its script is at work: before that, Slurm is still busy with the launch."""
    controller.run("sbatch", "-o", "/dev/null", "--wrap", "exec sleep 3600")
    wait_for("the job to run", lambda: worker.processes("sleep"), story=lambda: account(controller))


def slurmd_start(controller: Host) -> str:
    """When the only slurmd started, in whole seconds; a second and more pass before a dead one is started again."""
    found = controller.run("scontrol", "show", "node", "n1").partition("SlurmdStartTime=")[2]
    return found.split()[0]


def run_time(controller: Host) -> int:
    """For how many seconds the only job has run, as slurmctld counts."""
    minutes, seconds = controller.run("squeue", "-h", "-o", "%M").strip().split(":")
    return int(minutes) * 60 + int(seconds)


def test_a_replaced_worker_gives_up_the_job_that_died_with_the_old_one(lab: Lab) -> None:
    controller = lab.slurmctld()
    answers(controller)
    worker = lab.slurmd("n1")
    idle(controller, "n1")
    start_job(controller, worker)
    worker.close()
    # Slurm believes in a reboot only a good second after it last heard of the node, and hears of a launch that late.
    heard = run_time(controller)
    wait_for("slurmctld to count on", lambda: run_time(controller) > heard + 3, story=lambda: account(controller))
    lab.slurmd("n1", "--extra=second")
    wait_for(
        "the reboot to be noticed",
        lambda: "Node unexpectedly rebooted" in controller.run("scontrol", "show", "node", "n1"),
        story=lambda: account(controller),
    )
    assert "Extra=second" in controller.run("scontrol", "show", "node", "n1")
    wait_for(
        "the job to be given up",
        lambda: controller.run("squeue", "-h", "-o", "%T").split() == ["PENDING"],
        story=lambda: account(controller),
    )


def test_slurmd_waits_for_a_slurmctld_that_comes_later(lab: Lab) -> None:
    worker = lab.slurmd("n1")
    wait_for("the entry point to start", worker.output.read_text)
    controller = lab.slurmctld()
    answers(controller)
    wait_for("n1 to register", lambda: "n1" in controller.run("sinfo", "-h", "-N", "-o", "%n"))
