"""Several login sets of one cluster: each has its own address, host keys and way in."""

from tests.support.site import ADMINS, LOGIN, Site


def test_root_logs_in_by_key_only_where_the_login_set_says_so(site: Site) -> None:
    (pod,) = site.login_pods(ADMINS)
    uid, node = site.ssh("root", "id --user && srun --nodes=1 hostname", pod=pod).split()
    assert uid == "0"
    assert node in site.nodes()
    assert "Permission denied" in site.refusal("root", pod=site.login_pods(LOGIN)[0])


def test_login_sets_have_addresses_and_host_keys_of_their_own(site: Site) -> None:
    services = [site.get("service", name)["spec"]["clusterIP"] for name in (LOGIN, ADMINS)]
    keys = [site.get("secret", f"{name}-ssh-host-keys")["data"] for name in (LOGIN, ADMINS)]
    assert services[0] != services[1]
    assert set(keys[0].values()).isdisjoint(keys[1].values())


def test_users_of_the_directory_get_in_by_either(site: Site) -> None:
    for name in (LOGIN, ADMINS):
        assert (
            site.ssh("alice", "sinfo --noheader > /dev/null && id --user", pod=site.login_pods(name)[0]).strip()
            == "5001"
        )
