"""`helm uninstall` of the operator: clusters run on, and no object waits for someone who is gone."""

from kubeslurm.api.names import FINALIZER
from kubeslurm.cli.up import helm, releases
from kubeslurm.cli.up.installation import Installation
from tests.support.slurm import KINDS, Slurm
from tests.support.waiting import wait_for


def held(slurm: Slurm) -> list[bool]:
    """Of each object, whether the operator holds it."""
    return [FINALIZER in item["metadata"].get("finalizers", ()) for item in slurm.items(*KINDS)]


def test_a_cluster_runs_on_without_the_operator_and_is_taken_up_again(slurm: Slurm, product: Installation) -> None:
    wait_for("the operator to hold its objects", lambda: all(held(slurm)))
    job = slurm.submit("sleep 5")
    try:
        helm.uninstall(product.access, releases.OPERATOR, releases.OPERATOR_NAMESPACE)
        assert not any(held(slurm))
        slurm.wait_for_job(job, "COMPLETED")
        assert slurm.hosts("--nodes=2") == sorted(slurm.nodes())
    finally:
        helm.install(product.access, releases.operator(product.tags), wait=True)
    wait_for("the operator to hold its objects again", lambda: all(held(slurm)))
