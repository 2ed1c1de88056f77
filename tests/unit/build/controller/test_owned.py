"""Settings that belong to the operator are refused with their place, unless they say what is so anyway."""

from typing import Any

import msgspec
import pytest

from kubeslurm.api.slinky.controller import Controller
from kubeslurm.api.views import ConfigMap
from kubeslurm.build.controller import config, owned

METADATA = {"name": "c", "namespace": "ns", "uid": "u"}


def found(extra: str = "", files: dict[str, str] | None = None, **spec: Any) -> list[str]:
    keys = {"slurmKeyRef": {"name": "keys", "key": "slurm.key"}, "jwtKeyRef": {"name": "keys", "key": "jwt.key"}}
    refs = {"configFileRefs": [{"name": "files"}]}
    tree = {"metadata": METADATA, "spec": {**keys, **refs, "extraConf": extra, **spec}}
    more = msgspec.convert({"metadata": {"name": "files", "namespace": "ns"}, "data": files or {}}, ConfigMap)
    sources = config.Sources(controller=msgspec.convert(tree, Controller), configmaps={"files": more})
    return [str(problem) for problem in owned.problems(sources, config.files(sources))]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("StateSaveLocation=/tmp", "StateSaveLocation=/tmp: the operator sets it (here /var/spool/slurmctld/ns_c)"),
        ("ClusterName=other", "the name is spec.clusterName of the Controller"),
        ("slurmctldport = 7000", "set spec.service.port of the Controller instead"),
        ("SlurmctldHost=backup", "SlurmctldHost=backup: the operator sets it (here c-controller-0(c-controller.ns))"),
        ("SlurmctldAddr=10.0.0.1", "slurmctld is found by its Service"),
        ("ControlMachine=me", "ControlMachine=me: the operator sets it; remove the line"),
        ("SlurmUser=root", "SlurmUser=root: the operator sets it (here slurm)"),
        ("SlurmdUser=slurm", "SlurmdUser=slurm"),
        ("SlurmdPort=7003", "SlurmdPort=7003"),
        ("AuthType=auth/munge", "see spec.slurmKeyRef"),
        ("CredType=cred/munge", "CredType=cred/munge"),
        ("AuthAltTypes=auth/none", "see spec.jwtKeyRef"),
    ],
)
def test_another_value_is_refused_with_its_line_and_what_to_do_instead(line: str, told: str) -> None:
    (text,) = found(f"MaxJobCount=5\n{line}\n")
    assert text.startswith("slurm.conf:31: ")
    assert told in text


@pytest.mark.parametrize(
    "line",
    [
        "ClusterName=NS_C",
        "SlurmctldPort=6817",
        "StateSaveLocation=/var/spool/slurmctld/ns_c/",
        "SlurmctldHost=c-controller-0(c-controller.ns)",
        "SlurmctldAddr=c-controller.ns",
        "SlurmUser=401",
        "AuthType=auth/slurm",
        "AuthInfo=ttl=5",
        "AuthAltParameters=jwt_key=/mine",
        "SlurmctldParameters+=idle_on_node_suspend",
        "AccountingStorageHost=elsewhere",
        "SlurmctldPidFile=/run/own.pid",
        "SlurmctldLogFile=/dev/null",
        "SlurmdSpoolDir=/var/spool/own",
        "MaxNodeCount=4096",
        "PartitionName=x Nodes=ALL",
    ],
)
def test_what_means_the_same_and_what_users_may_choose_is_in_order(line: str) -> None:
    assert found(line) == []


def test_the_last_value_counts_as_in_slurm() -> None:
    assert found("SlurmctldPort=7000\nSlurmctldPort=6817\n") == []


def test_another_port_of_the_service_is_the_right_one() -> None:
    assert found("SlurmctldPort=7000", service={"port": 7000}) == []


def test_included_files_are_checked_too() -> None:
    files = {"more.conf": "# mine\nStateSaveLocation=/tmp\nAuthInfo=ttl=5\n"}
    first, second = found("Include more.conf", files)
    assert first.startswith("more.conf:2: StateSaveLocation=/tmp")
    assert second == "more.conf:3: AuthInfo must contain use_client_ids: add it, or move the line to spec.extraConf"


def test_a_configmap_cannot_replace_the_generated_file() -> None:
    files = {"slurm.conf": "ClusterName=other\n", "gres.conf": ""}
    (text,) = found("", files)
    assert text == (
        "slurm.conf: the file of ConfigMap files is not used: put its lines into spec.extraConf of the Controller"
    )


def test_a_slurmctld_elsewhere_has_its_own_settings() -> None:
    assert found("SlurmctldPort=7000", external=True, externalConfig={"host": "h", "port": 1}) == []
