"""Logging in as a user of the directory, and working there."""

from tests.support.site import LOGIN, LOGINSET, Site
from tests.support.waiting import wait_for


def test_a_user_of_the_directory_submits_and_finds_the_output_at_home(site: Site) -> None:
    said = site.ssh(
        "alice", "id --user --name && cd && sbatch --wait --output=result.txt --wrap 'id --user' && cat result.txt"
    )
    assert said.split()[0] == "alice"
    assert said.split()[-1] == "5001"


def test_the_home_is_the_same_in_every_login_pod(site: Site) -> None:
    first, second = site.login_pods()
    site.ssh("bob", "echo here > note", pod=first)
    assert site.ssh("bob", "cat note", pod=second).strip() == "here"


def test_srun_runs_as_the_user_on_every_worker(site: Site) -> None:
    assert site.ssh("alice", "srun --nodes=2 id --user").split() == ["5001", "5001"]


def test_users_see_their_own_records(site: Site) -> None:
    job = site.submit_as("alice", "true")
    site.wait_until_recorded(job)
    assert str(job) in site.ssh("alice", "sacct --allocations --noheader --format=jobid")


def test_neither_a_wrong_password_nor_an_unknown_name_lets_in(site: Site) -> None:
    assert site.ssh("alice", "echo in").strip() == "in"
    assert "Permission denied" in site.refusal("alice", password="guess")
    assert "Permission denied" in site.refusal("mallory")


def test_the_login_set_says_that_users_can_submit(site: Site) -> None:
    said = "users can submit from 2 of 2 login pods"
    wait_for("the condition", lambda: site.conditions(LOGINSET, LOGIN)["Ready"]["message"] == said)
