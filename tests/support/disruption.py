"""What Kubernetes' own controllers do to pods: evictions within the budgets, and garbage collection."""

import copy

from kubeslurm.api.kinds import NODESET, POD, POD_DISRUPTION_BUDGET
from kubeslurm.api.meta import Tree
from kubeslurm.engine.key import Key
from tests.support.clock import stamp
from tests.support.fake_kube import KINDS, FakeKube

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"  # the finalizers of a cascade


def evict(kube: FakeKube, name: str) -> bool:
    """Asks for an eviction; whether it was granted."""
    pod = copy.deepcopy(kube.trees[POD.plural, Key("slurm", name)])
    budgets = [tree for (plural, _), tree in kube.trees.items() if plural == POD_DISRUPTION_BUDGET.plural]
    if _is_healthy(pod) and any(_matches(each, pod) and _allowed(kube, each) <= 0 for each in budgets):
        return False
    pod["metadata"]["deletionTimestamp"] = stamp()
    kube.put(POD, pod)
    return True


def collect_garbage(kube: FakeKube) -> None:
    """Does its part of a cascade: children lose their owner, or go when they have no other."""
    for key in [key for plural, key in kube.trees if plural == NODESET.plural]:
        tree = copy.deepcopy(kube.trees[NODESET.plural, key])
        metadata = tree["metadata"]
        cascade = {ORPHAN, FOREGROUND} & set(metadata.get("finalizers", ()))
        if not metadata.get("deletionTimestamp") or not cascade:
            continue
        for plural, child in [(each[0], tree) for each, tree in kube.trees.items() if _is_owned(tree, metadata["uid"])]:
            _release(kube, plural, child, metadata["uid"], deletes=FOREGROUND in cascade)
        metadata["finalizers"] = [each for each in metadata["finalizers"] if each not in cascade]
        if metadata["finalizers"]:
            kube.put(NODESET, tree)
        else:
            kube.remove(NODESET, key)


def _release(kube: FakeKube, plural: str, child: Tree, owner: str, *, deletes: bool) -> None:
    kind = next(each for each in KINDS if each.plural == plural)
    tree = copy.deepcopy(child)
    kept = [each for each in tree["metadata"]["ownerReferences"] if each["uid"] != owner]
    tree["metadata"]["ownerReferences"] = kept
    if deletes and not kept:
        if kind is not POD:
            kube.remove(kind, Key(tree["metadata"]["namespace"], tree["metadata"]["name"]))
            return
        tree["metadata"]["deletionTimestamp"] = stamp()
    kube.put(kind, tree)


def _is_owned(tree: Tree, owner: str) -> bool:
    return any(each["uid"] == owner for each in tree["metadata"].get("ownerReferences", ()))


def _is_healthy(pod: Tree) -> bool:
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))
    return ready and not pod["metadata"].get("deletionTimestamp")


def _matches(budget: Tree, pod: Tree) -> bool:
    labels = pod["metadata"].get("labels", {})
    wanted = budget["spec"]["selector"]["matchLabels"]
    return all(labels.get(key) == value for key, value in wanted.items())


def _allowed(kube: FakeKube, budget: Tree) -> int:
    """How many pods the disruption controller lets go; with maxUnavailable it asks their owners for the count."""
    pods = [pod for pod in kube.pods() if _matches(budget, pod)]
    healthy = sum(1 for pod in pods if _is_healthy(pod))
    spec = budget["spec"]
    if "minAvailable" in spec:
        return healthy - int(spec["minAvailable"])
    owners = {each["uid"] for pod in pods for each in pod["metadata"]["ownerReferences"] if each.get("controller")}
    sets = [tree for (plural, _), tree in kube.trees.items() if plural == NODESET.plural]
    expected = sum(int(tree["spec"]["replicas"]) for tree in sets if tree["metadata"]["uid"] in owners)
    return healthy - (expected - int(spec["maxUnavailable"]))
