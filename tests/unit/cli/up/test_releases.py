from kubeslurm.cli.up import releases

TAGS = dict.fromkeys(("slurmctld", "slurmd", "slurmrestd", "slurm-operator", "slurm-operator-webhook"), "abc")


def test_values_of_the_user_override_ours() -> None:
    release = releases.slurm(TAGS, {"nodesets": {"worker": {"replicas": 7}}, "partitions": {"all": {"enabled": False}}})
    assert release.values["nodesets"]["worker"]["replicas"] == 7
    assert release.values["partitions"]["all"]["enabled"] is False
    assert release.values["controller"]["slurmctld"]["image"] == {"repository": "localhost/slurmctld", "tag": "abc"}


def test_operator_and_webhook_prefer_the_same_node_on_a_local_cluster() -> None:
    values = releases.operator(TAGS).values
    for key in ("operator", "webhook"):
        (preference,) = values[key]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        assert preference["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
        assert values[key]["image"]["tag"] == "abc"


def test_the_digest_of_a_release_depends_on_its_values() -> None:
    one, same, other = releases.slurm(TAGS, {}), releases.slurm(TAGS, {}), releases.slurm(TAGS, {"clusterName": "x"})
    assert one.digest == same.digest
    assert one.digest != other.digest


def test_published_images_are_used_if_none_were_built() -> None:
    assert "image" not in releases.slurm({}, {}).values["controller"]["slurmctld"]
    assert releases.operator({}).values == {}


def test_published_images_can_come_from_another_registry() -> None:
    release = releases.slurm({}, {}, "images.example.org/hpc")
    assert release.values["accounting"]["mariadb"]["image"] == {"repository": "images.example.org/hpc/mariadb"}
    assert "isolation" not in release.values
    webhook = releases.operator({}, "images.example.org/hpc").values["webhook"]["image"]
    assert webhook == {"repository": "images.example.org/hpc/slurm-operator-webhook"}


def test_a_trial_has_accounting_and_a_login_pod_with_a_node_port_only_if_exposed() -> None:
    exposed = releases.trial_values(2, "ssh-ed25519 A", exposed=True)
    hidden = releases.trial_values(2, "", exposed=False)
    assert exposed["accounting"] == {"enabled": True, "mariadb": {"enabled": True}}
    assert exposed["loginsets"]["main"]["rootSshAuthorizedKeys"] == "ssh-ed25519 A"
    assert exposed["loginsets"]["main"]["service"]["spec"]["type"] == "NodePort"
    assert hidden["loginsets"]["main"]["service"]["spec"]["type"] == "ClusterIP"
