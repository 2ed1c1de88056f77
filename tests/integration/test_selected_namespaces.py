"""An operator for selected namespaces, with the roles that the chart gives it."""

import asyncio
import json
from pathlib import Path

import yaml

from kubeslurm.api.meta import Tree
from kubeslurm.cli.up.helm import Release, render
from kubeslurm.cli.up.releases import CHARTS
from kubeslurm.local.cluster.cluster import Cluster
from kubeslurm.operator.rbac import cached
from tests.support.audit import lines, parts_of
from tests.support.operator import DEADLINE, SMALL, account, running

SELECTED, OTHER = "selected", "not-selected"


async def test_selected_namespaces_need_only_roles_there_and_read_access_to_nodes(
    definitions: Cluster, namespace: str, tmp_path: Path
) -> None:
    async def kubectl(*args: str, stdin: str | None = None) -> str:
        return await asyncio.to_thread(definitions.kubectl, *args, stdin=stdin)

    rights, flags = chart(namespace)
    assert cluster_rules(rights) == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    # The objects that must not be touched are created first.
    for place in (OTHER, SELECTED):
        await kubectl("create", "namespace", place)
        await kubectl("apply", f"--namespace={place}", "--filename=-", stdin=SMALL)
    kubeconfig = await asyncio.to_thread(account, definitions, namespace, rights, tmp_path)

    environment = {"KUBECONFIG": str(kubeconfig), "POD_NAMESPACE": namespace}
    async with running(tmp_path / "log", flags, **environment) as replica, asyncio.timeout(2 * DEADLINE):
        await replica.until_ready()
        for made in ("poddisruptionbudget/slurm-workers-pdb-slurm", "secret/token-jwt-me"):
            await kubectl("wait", "--for=create", "--timeout=180s", made, f"--namespace={SELECTED}")
        while not all(await asyncio.to_thread(handled, definitions, SELECTED)):  # noqa: ASYNC110 (another process does it)
            await asyncio.sleep(0.2)
        scraped = await replica.get(replica.metrics, "/metrics")
        assert not any(handled(definitions, OTHER))
        # Before the namespace: its deletion removes the Role, and with it the right to remove finalizers.
        await kubectl("delete", "slurm", "--all", f"--namespace={SELECTED}", "--timeout=180s")
        await kubectl("delete", "namespace", OTHER, SELECTED, "--timeout=180s")
    assert scraped is not None
    assert "kubeslurm_api_requests_total" in scraped.text
    assert 'code="403"' not in scraped.text

    await until_all_watches_are_logged(definitions, namespace)
    places = requested(definitions, namespace)
    assert set().union(*places.values()) == {"", SELECTED, namespace}
    assert [resource for resource, found in places.items() if "" in found] == ["nodes"]
    assert [resource for resource, found in places.items() if namespace in found] == ["leases"]


async def until_all_watches_are_logged(cluster: Cluster, namespace: str) -> None:
    """Wait for the audit log, in which a watch appears once it has ended."""
    everything = {kind.plural for kind in cached()}
    async with asyncio.timeout(DEADLINE):
        while not everything <= requested(cluster, namespace, "watch").keys():  # noqa: ASYNC110 (another process)
            await asyncio.sleep(0.2)


def chart(namespace: str) -> tuple[list[Tree], list[str]]:
    """The chart's objects for the operator's account, and the operator's flags."""
    values = {"operator": {"namespaces": SELECTED}, "webhook": {"enabled": False}}
    text = render(Release("slurm-operator", namespace, CHARTS / "slurm-operator", values))
    trees = [tree for tree in yaml.safe_load_all(text) if tree]
    (deployment,) = (tree for tree in trees if tree["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [tree for tree in trees if "Role" in tree["kind"] or tree["kind"] == "ServiceAccount"], container["args"]


def cluster_rules(rights: list[Tree]) -> list[Tree]:
    """The rules for the whole cluster."""
    return [rule for tree in rights if tree["kind"] == "ClusterRole" for rule in tree["rules"]]


def handled(cluster: Cluster, namespace: str) -> list[bool]:
    """For each Slurm object: whether an operator has written its status or added a finalizer."""
    found = json.loads(cluster.kubectl("get", "slurm", f"--namespace={namespace}", "--output=json"))["items"]
    assert {each["kind"] for each in found} == {"Controller", "NodeSet", "Token"}
    return ["conditions" in each.get("status", {}) or "finalizers" in each["metadata"] for each in found]


def requested(cluster: Cluster, namespace: str, verb: str = "") -> dict[str, set[str]]:
    """The namespaces in which the operator's account requested each resource, from the audit log."""
    places: dict[str, set[str]] = {}
    user = f"system:serviceaccount:{namespace}:slurm-operator"
    for entry in map(json.loads, lines(parts_of(cluster))):
        if entry["user"]["username"] == user and verb in ("", entry["verb"]):
            target = entry["objectRef"]
            places.setdefault(target["resource"], set()).add(target.get("namespace", ""))
    return places
