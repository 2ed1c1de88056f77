"""Flags, environment and the settings file, as people and existing Deployments write them."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kubeslurm.operator.controllers import SETTINGS
from kubeslurm.operator.settings import flags
from kubeslurm.operator.settings.load import cluster_domain, load
from kubeslurm.operator.settings.model import OperatorSettings, SettingsError, WebhookSettings, address

ENVIRON = {"POD_NAMESPACE": "slinky", "KUBESLURM_CLUSTER_DOMAIN": "cluster.local"}

# What the Deployments of existing installations pass.
MANAGER_ARGS = [
    "--zap-log-level=info",
    "--accounting-workers=4",
    "--controller-workers=4",
    "--loginset-workers=4",
    "--nodeset-workers=4",
    "--restapi-workers=4",
    "--slurmclient-workers=2",
    "--token-workers=4",
    "--health-addr=:8081",
    "--metrics-addr=:8080",
    "--leader-elect",
    "--leader-elect-namespace=slinky",
    "--namespaces=team-a,team-b",
    "--propagated-node-conditions=GpuHealthy",
]
WEBHOOK_ARGS = [
    "--zap-log-level",
    "1",
    "--server-addr",
    ":9443",
    "--health-addr",
    ":8081",
    "--metrics-addr",
    "0",
    "--leader-elect=true",
]


def operator(*argv: str, environ: dict[str, str] = ENVIRON) -> OperatorSettings:
    return load(SETTINGS, argv, environ)[0]


def test_the_arguments_of_an_existing_manager_deployment_are_understood() -> None:
    settings, warnings = load(SETTINGS, MANAGER_ARGS, ENVIRON)
    assert settings == SETTINGS(
        namespace="slinky",
        namespaces=("team-a", "team-b"),
        leader_elect=True,
        leader_elect_namespace="slinky",
        cluster_domain="cluster.local",
        propagated_node_conditions=("GpuHealthy",),
    )
    assert warnings == ()


def test_the_arguments_of_an_existing_webhook_deployment_are_understood() -> None:
    settings, warnings = load(WebhookSettings, WEBHOOK_ARGS, ENVIRON)
    assert settings == WebhookSettings(namespace="slinky", log_level="debug", leader_elect=True)
    assert warnings == ()


def test_a_condition_that_healthy_nodes_have_cannot_drain_them() -> None:
    assert operator("--drain-on-node-conditions=GpuFault").drain_on_node_conditions == ("GpuFault",)
    with pytest.raises(SettingsError, match="would drain every healthy node"):
        operator("--drain-on-node-conditions=GpuFault,Ready")


def test_an_unknown_way_to_show_drains_is_refused() -> None:
    assert operator("--slurm-drain-on-node=Cordon").slurm_drain_on_node == "Cordon"
    with pytest.raises(SettingsError, match="Condition, Taint or Cordon"):
        operator("--slurm-drain-on-node=yes")


@pytest.mark.parametrize(
    "argv",
    [
        ["--leader-elect"],
        ["-leader-elect"],
        ["--leader-elect=true"],
        ["-leader-elect=T"],
        ["--leader-elect=1"],
    ],
)
def test_a_boolean_may_be_written_in_every_way_that_go_accepts(argv: list[str]) -> None:
    assert operator(*argv).leader_elect is True


@pytest.mark.parametrize("argv", [["--health-addr", ":1"], ["-health-addr=:1"], ["-health-addr", ":1"]])
def test_a_value_may_follow_or_be_attached(argv: list[str]) -> None:
    assert operator(*argv).health_addr == ":1"


def test_a_boolean_does_not_swallow_the_next_flag() -> None:
    settings = operator("--leader-elect", "--metrics-addr", "0")
    assert (settings.leader_elect, settings.metrics_addr) == (True, "0")


@pytest.mark.parametrize(
    ("argv", "level", "form"),
    [
        (["--zap-devel"], "debug", "console"),
        (["--zap-devel=false"], "info", "auto"),
        (["--zap-log-level=error", "--zap-encoder=json"], "error", "json"),
        (["--zap-log-level=0"], "info", "auto"),
        (["--zap-log-level=3"], "debug", "auto"),
        (["--zap-log-level=panic"], "critical", "auto"),
        (["--zap-devel", "--log-level=warning"], "warning", "console"),
    ],
)
def test_zap_logging_flags_are_translated(argv: list[str], level: str, form: str) -> None:
    settings = operator(*argv)
    assert (settings.log_level, settings.log_format) == (level, form)


def test_flags_without_a_counterpart_are_accepted_and_said() -> None:
    argv = [
        "--zap-time-encoding",
        "epoch",
        "--zap-new=1",
        "--zap-bare",
        "--enable-http2",
        "--profile",
        "--profile-addr=:1",
    ]
    settings, warnings = load(SETTINGS, argv, ENVIRON)
    assert settings == SETTINGS(namespace="slinky", cluster_domain="cluster.local")
    assert [warning.split()[0] for warning in warnings] == [
        "--zap-time-encoding",
        "--zap-new",
        "--zap-bare",
        "--enable-http2",
        "--profile",
        "--profile-addr",
    ]


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("healthAddr: ':1'\nmetricsAddr: ':1'\nnodesetWorkers: 9\nnamespaces: [a, b]\n")
    settings = operator(
        f"--config={file}", "--health-addr=:3", environ={"KUBESLURM_HEALTH_ADDR": ":2", "KUBESLURM_METRICS_ADDR": ":2"}
    )
    assert (settings.health_addr, settings.metrics_addr) == (":3", ":2")
    assert msgspec.structs.asdict(settings)["nodeset_workers"] == 9
    assert settings.namespaces == ("a", "b")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--helth-addr=:1"], "did you mean --health-addr"),
        (["--frobnicate"], "--help lists"),
        (["start"], "is not a flag"),
        (["--health-addr"], "needs a value"),
        (["--health-addr=8081x"], "is not an address"),
        (["--metrics-addr=:99999"], "is not an address"),
        (["--leader-elect=maybe"], "write true or false"),
        (["--nodeset-workers=many"], "write a whole number"),
        (["--nodeset-workers=0"], "at least 1"),
        (["--log-level=loud"], "use debug, info"),
        (["--log-format=xml"], "use auto, json"),
        (["--metrics-addr=0", "--metrics-secure"], "metrics-secure needs a metrics address"),
        (["--config=/does/not/exist"], "cannot be read"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_remedy(argv: list[str], said: str) -> None:
    with pytest.raises((SettingsError, flags.FlagError), match=said):
        operator(*argv)


@pytest.mark.parametrize("text", ["healtAddr: ':1'", "nodesetWorkers: many", "[1]", "a: [", "a: b: c"])
def test_a_settings_file_with_a_mistake_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=str(file)):
        operator(f"--config={file}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [(":8081", ("", 8081)), ("127.0.0.1:1", ("127.0.0.1", 1)), ("[::1]:2", ("::1", 2)), ("0", None)],
)
def test_addresses_are_read_as_go_reads_them(text: str, expected: Any) -> None:
    assert address(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("search slurm.svc.example.org svc.example.org example.org\nnameserver 10.96.0.10\n", "example.org"),
        ("nameserver 10.0.0.1\nsearch svc.cluster.test. lan\n", "cluster.test"),
        ("search lan\n", "cluster.local"),
        ("", "cluster.local"),
    ],
)
def test_the_domain_of_the_cluster_is_found_in_the_search_list(text: str, expected: str) -> None:
    assert cluster_domain(text) == expected


def test_the_lease_lives_with_the_operator_unless_told_otherwise() -> None:
    assert operator().lease_namespace == "slinky"
    assert operator("--leader-elect-namespace=other").lease_namespace == "other"
