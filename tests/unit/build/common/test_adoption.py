from typing import Any

import msgspec

from kubeslurm.api import names
from kubeslurm.api.views import StatefulSet
from kubeslurm.build.common.adoption import is_adoption, settled


def desired(image: str = "new") -> dict[str, Any]:
    return {
        "metadata": {"name": "s"},
        "spec": {
            "serviceName": "ours",
            "replicas": 1,
            "template": {
                "metadata": {"annotations": {names.RESTART_HASH: "1"}},
                "spec": {"containers": [{"image": image}]},
            },
        },
    }


def live(template: dict[str, Any], annotations: dict[str, str] | None = None) -> StatefulSet:
    metadata = {"name": "s", "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"serviceName": "theirs", "template": template}}, StatefulSet)


FOREIGN = {
    "metadata": {"annotations": {"slinky.slurm.net/slurm-config-hash": "abc"}},
    "spec": {"containers": [{"image": "old"}]},
}


def test_a_new_workload_is_made_as_desired() -> None:
    assert settled(desired(), None) == desired()


def test_what_kubernetes_cannot_change_stays() -> None:
    ours = desired()["spec"]["template"]
    assert settled(desired(), live(ours))["spec"]["serviceName"] == "theirs"


def test_a_foreign_template_is_kept_with_its_hash_annotations() -> None:
    tree = settled(desired(), live(FOREIGN))
    assert tree["spec"]["template"] == FOREIGN
    assert names.ADOPTED in tree["metadata"]["annotations"]


def test_an_adopted_template_stays_for_as_long_as_nobody_changes_the_spec() -> None:
    note = settled(desired(), live(FOREIGN))["metadata"]["annotations"]
    again = settled(desired(), live(FOREIGN, note))
    assert again["spec"]["template"] == FOREIGN


def test_a_changed_spec_replaces_the_adopted_template() -> None:
    note = settled(desired(), live(FOREIGN))["metadata"]["annotations"]
    changed = settled(desired("newer"), live(FOREIGN, note))
    assert changed["spec"]["template"] == desired("newer")["spec"]["template"]
    assert names.ADOPTED not in changed["metadata"].get("annotations", {})


def test_an_adoption_is_one_only_the_first_time() -> None:
    tree = settled(desired(), live(FOREIGN))
    assert is_adoption(tree, live(FOREIGN))
    assert not is_adoption(tree, live(FOREIGN, tree["metadata"]["annotations"]))
    assert not is_adoption(desired(), live(desired()["spec"]["template"]))


def test_an_adopted_template_is_given_up_on_request() -> None:
    again = settled(desired(), live(FOREIGN, {names.ADOPTED: "no"}))
    assert again["spec"]["template"] == desired()["spec"]["template"]
