"""Losses that take minutes to be sure of."""

from tests.support.nodeset import Workers
from tests.support.slurm import Slurm
from tests.support.waiting import wait_for


def test_a_worker_that_slurm_has_forgotten_is_started_afresh(slurm: Slurm) -> None:
    """Its slurmd lives on and never registers again by itself; three lists, half a minute apart, must agree."""
    workers = Workers(slurm)
    workers.scale(3)
    workers.wait_until_idle(3)
    before = workers.uids()
    lost = workers.one()
    slurm.run("scontrol", "delete", f"nodename={lost}")
    wait_for("another pod", lambda: workers.uids().get(lost, before[lost]) != before[lost], within=240)
    workers.wait_until_idle(3, within=120)
    after = workers.uids()
    assert {node for node in after if after[node] != before[node]} == {lost}
