"""Objects whose pods a real API server refuses: their status names the field to correct."""

import asyncio
import json
from pathlib import Path

from kubeslurm.local.cluster.cluster import Cluster
from tests.support.operator import DEADLINE, SMALL, running


async def test_missing_images_are_named_in_a_condition_and_can_be_set_later(
    definitions: Cluster, namespace: str, tmp_path: Path
) -> None:
    async def kubectl(*args: str, stdin: str | None = None) -> str:
        return await asyncio.to_thread(definitions.kubectl, f"--namespace={namespace}", *args, stdin=stdin)

    async def conditions(what: str) -> str:
        found = json.loads(await kubectl("get", what, "--output=json")).get("status", {}).get("conditions", [])
        return " ".join(f"{each['type']}={each['status']} {each['reason']} {each['message']}" for each in found)

    async def until(what: str, text: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while text not in await conditions(what):  # noqa: ASYNC110 (another process writes it)
                await asyncio.sleep(0.2)

    flags = [f"--kubeconfig={definitions.kubeconfig}", f"--namespaces={namespace}"]
    async with running(tmp_path / "log", flags) as replica:
        await kubectl("apply", "--filename=-", stdin=SMALL)
        await until("controller/slurm", "spec.containers[0].image: Required value; set spec.slurmctld.image")
        assert "Ready=False" in await conditions("controller/slurm")
        events = ("get", "events", "--field-selector=reason=FailedCreate", "--output=jsonpath={.items[*].message}")
        async with asyncio.timeout(DEADLINE):
            while "; set spec.slurmd.image" not in await kubectl(*events):  # noqa: ASYNC110
                await asyncio.sleep(0.2)

        await kubectl("patch", "controller/slurm", "--type=merge", f"--patch={image('slurmctld')}")
        await kubectl("patch", "nodeset/cpu", "--type=merge", f"--patch={image('slurmd')}")
        await kubectl("wait", "--for=create", "--timeout=180s", "pod/cpu-0")
        await until("controller/slurm", "ConfigTrialRunning")
        # While the operator runs and removes the finalizers; otherwise the namespace would stay.
        await kubectl("delete", "slurm", "--all", "--timeout=180s")
    assert "Traceback" not in replica.log.read_text()


def image(container: str) -> str:
    return json.dumps({"spec": {container: {"image": "nowhere/slurm:1"}}})
