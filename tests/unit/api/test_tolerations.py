"""Which taints workers tolerate."""

from kubeslurm.api import tolerations
from kubeslurm.api.slinky.nodeset import WorkerTemplate
from tests.support.workers import nodeset


def test_workers_are_not_evicted_from_an_unreachable_node() -> None:
    forever = {
        (each["key"], each["effect"]) for each in tolerations.of_workers(nodeset()) if "tolerationSeconds" not in each
    }
    assert ("node.kubernetes.io/unreachable", "NoExecute") in forever
    assert ("node.kubernetes.io/not-ready", "NoExecute") in forever


def test_a_users_own_toleration_of_the_same_taint_wins() -> None:
    own = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}
    found = tolerations.of_workers(nodeset(template=WorkerTemplate(spec={"tolerations": [own]})))
    assert [each for each in found if each["key"] == "node.kubernetes.io/unreachable"] == [own]
