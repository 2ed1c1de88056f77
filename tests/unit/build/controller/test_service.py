"""The address of slurmctld."""

from kubeslurm.api.slinky.fragments import ExternalConfig
from kubeslurm.build.controller.service import conf_server
from tests.support.workers import controller


def test_workers_of_an_external_controller_fetch_their_configuration_there() -> None:
    external = controller(external=True, externalConfig=ExternalConfig(host="ctl.example.org", port=7000))
    assert conf_server(external) == "ctl.example.org:7000"
