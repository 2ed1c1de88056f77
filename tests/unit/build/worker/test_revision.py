"""When workers get a new revision."""

from typing import Any

import msgspec
import pytest

from kubeslurm.api import names
from kubeslurm.api.slinky.fragments import TemplateMeta
from kubeslurm.api.slinky.nodeset import NodeSet, WorkerTemplate
from kubeslurm.api.views import ControllerRevision
from kubeslurm.build.worker import revision
from tests.support.workers import nodeset


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
        {"template": WorkerTemplate(spec={"nodeSelector": {"a": "b"}})},
        {"ordinalPadding": 2},
        {"oversubscribeNode": True},
    ],
)
def test_what_a_running_worker_cannot_take_over_makes_a_new_revision(spec: dict[str, Any]) -> None:
    known = revision_of(nodeset(slurmd={"image": "a"}))
    assert revision.choose(nodeset(**({"slurmd": {"image": "a"}} | spec)), [known], ()).create is not None


def test_a_revision_that_another_operator_wrote_is_recognised_by_its_content() -> None:
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
