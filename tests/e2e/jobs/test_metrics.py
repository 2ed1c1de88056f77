"""Slurm's metrics: served by slurmctld, and announced to Prometheus where its operator is."""

from collections.abc import Iterator

import pytest

from kubeslurm.cli.up.repair import ESTABLISHED
from tests.support.kubernetes import Kubernetes
from tests.support.slurm import CONTROLLER, Slurm
from tests.support.waiting import wait_for
from tests.support.web import fetch

KIND = "servicemonitors.monitoring.coreos.com"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: servicemonitors.monitoring.coreos.com
spec:
  group: monitoring.coreos.com
  names: {kind: ServiceMonitor, plural: servicemonitors}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


def want_monitor(slurm: Slurm, wanted: bool) -> None:
    slurm.patch(CONTROLLER, "slurm", {"spec": {"metrics": {"serviceMonitor": {"enabled": wanted}}}})


@pytest.fixture
def monitors(slurm: Slurm, cluster: Kubernetes) -> Iterator[None]:
    """A cluster that knows ServiceMonitors."""
    cluster.kubectl("apply", "--filename=-", stdin=DEFINITION)
    cluster.kubectl("wait", ESTABLISHED, "--timeout=180s", f"crd/{KIND}")
    yield
    want_monitor(slurm, False)
    cluster.kubectl("delete", "crd", KIND, "--timeout=180s")


def test_slurmctld_serves_metrics(slurm: Slurm) -> None:
    address = slurm.get("pod", slurm.controller)["status"]["podIP"]
    assert "slurm_nodes" in fetch(slurm.cluster, f"http://{address}:6817/metrics/nodes")


def test_prometheus_is_told_where_to_look(slurm: Slurm, monitors: None) -> None:
    want_monitor(slurm, True)
    monitor = wait_for("the ServiceMonitor", lambda: slurm.find(KIND, "slurm-controller"))
    assert "/metrics/nodes" in {endpoint["path"] for endpoint in monitor["spec"]["endpoints"]}
    selected = monitor["spec"]["selector"]["matchLabels"]
    found = slurm.items("services", selector=",".join(f"{key}={value}" for key, value in selected.items()))
    assert [service["metadata"]["name"] for service in found] == ["slurm-controller"]
    want_monitor(slurm, False)
    wait_for("the ServiceMonitor to be gone", lambda: not slurm.find(KIND, "slurm-controller"))
