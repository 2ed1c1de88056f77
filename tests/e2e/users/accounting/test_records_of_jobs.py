"""Who ran what, and for which account."""

from functools import partial

from tests.support.site import Site
from tests.support.waiting import wait_for


def sacctmgr(site: Site, *words: str) -> str:
    return site.run("sacctmgr", "--immediate", *words, check=False)


def has_account(site: Site, user: str, account: str) -> bool:
    """Whether slurmctld has heard of it."""
    known = site.run("scontrol", "show", "assoc_mgr", "flags=assoc", f"users={user}", check=False)
    return f"Account={account}" in known


def test_jobs_of_two_users_are_recorded_under_their_accounts(site: Site) -> None:
    # slurmdbd tells a new account only to a slurmctld that has called it since it started; a record proves that.
    site.wait_until_recorded(site.submit_as("alice", "true"))
    for account, user in (("physics", "alice"), ("chemistry", "bob")):
        sacctmgr(site, "add", "account", account)
        sacctmgr(site, "add", "user", user, f"account={account}")
        wait_for(f"slurmctld to know {user}", partial(has_account, site, user, account))
    jobs = {user: site.submit_as(user, "true") for user in ("alice", "bob")}
    alice = site.wait_until_recorded(jobs["alice"])
    bob = site.wait_until_recorded(jobs["bob"])
    assert (alice["User"], alice["Account"]) == ("alice", "physics")
    assert (bob["User"], bob["Account"]) == ("bob", "chemistry")


def test_the_cluster_is_registered(site: Site) -> None:
    assert f"{site.namespace}_{site.name}" in site.clusters()


def test_a_failed_job_is_recorded_as_such(site: Site) -> None:
    found = site.wait_until_recorded(site.submit_as("alice", "exit 3"), "FAILED")
    assert found["ExitCode"] == "3:0"


def test_accounting_says_that_it_is_as_desired(site: Site) -> None:
    wait_for("accounting to be well", site.records_well)
