"""The parts of a worker: arguments of slurmd, quantities, tolerations, names, revisions."""

from typing import Any

import msgspec
import pytest

from kubeslurm.api import names, slots, tolerations
from kubeslurm.api.slinky.fragments import ExternalConfig, SecretKeySelector, TemplateMeta
from kubeslurm.api.slinky.nodeset import NodeSet, Ssh, WorkerTemplate
from kubeslurm.api.slots import Slot
from kubeslurm.api.views import ControllerRevision
from kubeslurm.build.common import quantity
from kubeslurm.build.controller.service import conf_server
from kubeslurm.build.worker import pod as worker
from kubeslurm.build.worker import revision
from kubeslurm.build.worker.slurmd_arguments import conf_argument
from tests.support.workers import controller, nodeset

CONF = {
    "only the name of the set": ("", "'Features=gpu'"),
    "features are sorted and unique": ("Features=h100,gpu Feature=a", "'Features=a,gpu,h100'"),
    "pairs are sorted": ("Weight=2 Gres=gpu:8", "'Features=gpu Gres=gpu:8 Weight=2'"),
    "keys are title case": ("memSpecLimit=1 GRES=gpu:1", "'Features=gpu Gres=gpu:1 Memspeclimit=1'"),
    "repeated keys accumulate": ("Gres=gpu:4 gres=mps:2", "'Features=gpu Gres=gpu:4,mps:2'"),
    "a token without a value is left out": ("nonsense Weight=2", "'Features=gpu Weight=2'"),
    "a value may hold an equals sign": ("Extra=a=b", "'Extra=a=b Features=gpu'"),
    "a topology of the user's stays": ("Topology=t:s1", "'Features=gpu Topology=t:s1'"),
}


@pytest.mark.parametrize(("extra", "argument"), CONF.values(), ids=CONF)
def test_what_slurmd_registers_with(extra: str, argument: str) -> None:
    assert conf_argument("gpu", extra) == argument


@pytest.mark.parametrize(
    ("text", "cores", "mebibytes"),
    [
        ("1", 1, 0),
        ("7500m", 8, 0),
        (0, 0, 0),
        ("0.5", 1, 0),
        (3, 3, 0),
        ("32Gi", 34359738368, 32768),
        ("1G", 10**9, 953),
    ],
)
def test_limits_are_rounded_on_the_safe_side(text: str | int, cores: int, mebibytes: int) -> None:
    assert (quantity.cores(text), quantity.mebibytes(text)) == (cores, mebibytes)


@pytest.mark.parametrize("text", ["", "many", "1Zi", "--1"])
def test_a_wrong_quantity_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.parse(text)


def template(**spec: Any) -> WorkerTemplate:
    return WorkerTemplate(spec=spec)


def test_a_kubelet_that_is_away_does_not_get_workers_evicted() -> None:
    forever = {
        (each["key"], each["effect"]) for each in tolerations.of_workers(nodeset()) if "tolerationSeconds" not in each
    }
    assert ("node.kubernetes.io/unreachable", "NoExecute") in forever
    assert ("node.kubernetes.io/not-ready", "NoExecute") in forever


def test_a_users_own_toleration_of_the_same_taint_wins() -> None:
    own = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}
    found = tolerations.of_workers(nodeset(template=template(tolerations=[own])))
    assert [each for each in found if each["key"] == "node.kubernetes.io/unreachable"] == [own]


def slurmd_of(given: NodeSet) -> dict[str, Any]:
    pod = worker.pod(controller(), given, slots.for_ordinal(given, 0), "hash", {}, "cluster.local")
    found: dict[str, Any] = pod["spec"]["containers"][0]
    return found


def test_an_unprivileged_worker_is_possible() -> None:
    found = slurmd_of(nodeset(slurmd={"securityContext": {"privileged": False}}))
    assert found["securityContext"]["privileged"] is False


def test_both_names_of_the_topology_are_set() -> None:
    variables = {each["name"] for each in slurmd_of(nodeset())["env"]}
    assert {"SLINKY_TOPOLOGY", "POD_TOPOLOGY", "POD_CPUS", "POD_MEMORY"} <= variables


def test_the_limits_of_the_container_win_over_those_of_the_pod() -> None:
    given = nodeset(
        slurmd={"resources": {"limits": {"cpu": 2}}},
        template=template(resources={"limits": {"cpu": 8, "memory": "1Gi"}}),
    )
    values = {each["name"]: each.get("value") for each in slurmd_of(given)["env"]}
    assert (values["POD_CPUS"], values["POD_MEMORY"]) == ("2", "1024")


def test_workers_of_an_external_controller_fetch_their_configuration_there() -> None:
    external = controller(external=True, externalConfig=ExternalConfig(host="ctl.example.org", port=7000))
    assert conf_server(external) == "ctl.example.org:7000"


def test_a_pod_outlives_a_foreground_deletion_of_its_nodeset() -> None:
    given = nodeset()
    pod = worker.pod(controller(), given, slots.for_ordinal(given, 0), "hash", {}, "cluster.local")
    assert [owner["kind"] for owner in pod["metadata"]["ownerReferences"]] == ["NodeSet", "Controller"]


NAMES = {
    "plain": ({}, 3, "gpu-3", "gpu-3"),
    "padded": ({"ordinalPadding": 3}, 7, "gpu-007", "gpu-007"),
    "with a prefix": ({"template": template(hostname="a100-")}, 3, "gpu-3", "a100-3"),
    "prefix and padding": ({"template": template(hostname="n"), "ordinalPadding": 4}, 12, "gpu-0012", "n0012"),
}


@pytest.mark.parametrize(("spec", "ordinal", "pod", "hostname"), NAMES.values(), ids=NAMES)
def test_names_follow_from_the_ordinal(spec: dict[str, Any], ordinal: int, pod: str, hostname: str) -> None:
    given = nodeset(**spec)
    slot = slots.for_ordinal(given, ordinal)
    assert (slots.pod_name(given, slot), slot.hostname, slots.slurm_name(given, slot)) == (
        pod,
        hostname,
        hostname,
    )


def test_claims_are_named_after_the_ordinal_or_the_node() -> None:
    assert slots.claim_name(nodeset(ordinalPadding=2), "data", Slot(ordinal=3, hostname="x")) == "data-gpu-03"
    assert slots.claim_name(nodeset(), "data", Slot(node="n", hostname="n")) == "data-gpu-n"


def revision_of(given: NodeSet, number: int = 1, **changes: Any) -> ControllerRevision:
    chosen = revision.choose(given, (), ())
    assert chosen.create is not None
    tree = chosen.create
    metadata = {"name": tree["metadata"]["name"], "labels": tree["metadata"]["labels"]}
    return msgspec.convert(
        {"metadata": metadata, "data": tree["data"], "revision": number} | changes, ControllerRevision
    )


def test_the_same_spec_keeps_its_revision() -> None:
    given = nodeset(slurmd={"image": "a"})
    known = revision_of(given)
    chosen = revision.choose(given, [known], ())
    assert (chosen.create, chosen.renumber, chosen.hash) == (None, None, revision.hash_of_revision(known))


def test_replicas_and_partitions_make_no_new_revision() -> None:
    known = revision_of(nodeset(replicas=1))
    assert revision.choose(nodeset(replicas=9, minReadySeconds=5), [known], ()).create is None


@pytest.mark.parametrize(
    "spec",
    [
        {"slurmd": {"image": "b"}},
        {"extraConf": "Weight=1"},
        {"template": template(nodeSelector={"a": "b"})},
        {"ordinalPadding": 2},
        {"oversubscribeNode": True},
    ],
)
def test_what_a_running_worker_cannot_take_over_makes_a_new_revision(spec: dict[str, Any]) -> None:
    known = revision_of(nodeset(slurmd={"image": "a"}))
    assert revision.choose(nodeset(**({"slurmd": {"image": "a"}} | spec)), [known], ()).create is not None


def test_a_revision_that_another_operator_wrote_is_recognised_by_its_meaning() -> None:
    given = nodeset(
        slurmd={"image": "slurmd:1", "args": [], "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}}},
        template=WorkerTemplate(spec={"hostname": "gpu-", "affinity": {}, "tolerations": [], "priorityClassName": ""}),
    )
    theirs = {
        "spec": {
            "ordinalPadding": 0,
            "oversubscribeNode": False,
            "slurmd": {
                "$patch": "replace",
                "image": "slurmd:1",
                "name": "",
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            },
            "template": {
                "$patch": "replace",
                "metadata": {},
                "spec": {"affinity": {}, "containers": None, "hostname": "gpu-", "resources": {}},
            },
        }
    }
    known = revision_of(given, data=theirs)
    assert revision.choose(given, [known], ()).create is None


def test_a_new_chart_version_restarts_no_worker() -> None:
    def labelled(version: str) -> NodeSet:
        return nodeset(template=WorkerTemplate(metadata=TemplateMeta(labels={"helm.sh/chart": f"slurm-{version}"})))

    assert revision.choose(labelled("2"), [revision_of(labelled("1"))], ()).create is None


def test_going_back_makes_the_old_revision_the_newest() -> None:
    first, second = nodeset(extraConf="Weight=1"), nodeset(extraConf="Weight=2")
    history = [revision_of(first, 1), revision_of(second, 2)]
    chosen = revision.choose(first, history, ())
    assert chosen.create is None
    assert chosen.renumber == (history[0].name, 3)


def test_history_is_kept_up_to_the_limit_and_as_long_as_pods_need_it() -> None:
    sets = [nodeset(extraConf=f"Weight={n}", revisionHistoryLimit=1) for n in range(4)]
    history = [revision_of(each, n) for n, each in enumerate(sets)]
    in_use = [revision.hash_of_revision(history[0])]
    assert revision.choose(sets[3], history, in_use).drop == (history[1].name,)


def test_a_hash_that_is_taken_by_another_template_is_avoided() -> None:
    given = nodeset(extraConf="Weight=1")
    imposter = revision_of(given, data={"spec": {"extraConf": "Weight=9"}})
    chosen = revision.choose(given, [imposter], ())
    assert chosen.create is not None
    assert chosen.collisions == 1
    assert chosen.create["metadata"]["name"] != imposter.name


def test_revisions_carry_the_labels_they_are_found_by() -> None:
    chosen = revision.choose(nodeset(), (), ())
    assert chosen.create is not None
    assert chosen.create["metadata"]["labels"][names.LABEL_INSTANCE] == "gpu"


def test_ssh_without_users_is_off() -> None:
    off = nodeset(ssh=Ssh(enabled=False, sssdConfRef=SecretKeySelector(name="s", key="k")))
    assert [port["name"] for port in slurmd_of(off)["ports"]] == ["slurmd"]
