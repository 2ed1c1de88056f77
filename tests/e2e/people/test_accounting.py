"""Who ran what, and for which account."""

from tests.support.site import ACCOUNTING, Site


def sacctmgr(site: Site, *words: str) -> str:
    return site.run("sacctmgr", "--immediate", *words, check=False)


def test_jobs_of_two_users_are_recorded_under_their_accounts(site: Site) -> None:
    for account, user in (("physics", "alice"), ("chemistry", "bob")):
        sacctmgr(site, "add", "account", account)
        sacctmgr(site, "add", "user", user, f"account={account}")
    jobs = {user: site.submit_as(user, "true") for user in ("alice", "bob")}
    alice = site.wait_until_recorded(jobs["alice"])
    bob = site.wait_until_recorded(jobs["bob"])
    assert (alice["User"], alice["Account"]) == ("alice", "physics")
    assert (bob["User"], bob["Account"]) == ("bob", "chemistry")


def test_the_cluster_is_registered(site: Site) -> None:
    known = site.run("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster").split()
    assert f"{site.namespace}_{site.name}" in known


def test_a_failed_job_is_recorded_as_such(site: Site) -> None:
    found = site.wait_until_recorded(site.submit_as("alice", "exit 3"), "FAILED")
    assert found["ExitCode"] == "3:0"


def test_accounting_says_that_it_is_as_wanted(site: Site) -> None:
    conditions = site.conditions(ACCOUNTING)
    assert conditions["Ready"]["status"] == "True"
    assert conditions["Degraded"]["status"] == "False"
