from typing import Any

import msgspec

from kubeslurm.api import names
from kubeslurm.api.views import StatefulSet
from kubeslurm.build.common.adoption import adapted, is_adoption


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


OTHER = {
    "metadata": {"annotations": {"slinky.slurm.net/slurm-config-hash": "abc"}},
    "spec": {"containers": [{"image": "old"}]},
}


def test_a_new_workload_is_made_as_desired() -> None:
    assert adapted(desired(), None) == desired()


def test_what_kubernetes_cannot_change_stays() -> None:
    ours = desired()["spec"]["template"]
    assert adapted(desired(), live(ours))["spec"]["serviceName"] == "theirs"


def test_the_template_of_another_operator_is_kept_with_its_hash_annotations() -> None:
    tree = adapted(desired(), live(OTHER))
    assert tree["spec"]["template"] == OTHER
    assert names.ADOPTED in tree["metadata"]["annotations"]


def test_an_adopted_template_stays_for_as_long_as_nobody_changes_the_spec() -> None:
    note = adapted(desired(), live(OTHER))["metadata"]["annotations"]
    again = adapted(desired(), live(OTHER, note))
    assert again["spec"]["template"] == OTHER


def test_a_changed_spec_replaces_the_adopted_template() -> None:
    note = adapted(desired(), live(OTHER))["metadata"]["annotations"]
    changed = adapted(desired("newer"), live(OTHER, note))
    assert changed["spec"]["template"] == desired("newer")["spec"]["template"]
    assert names.ADOPTED not in changed["metadata"].get("annotations", {})


def test_an_adoption_is_one_only_the_first_time() -> None:
    tree = adapted(desired(), live(OTHER))
    assert is_adoption(tree, live(OTHER))
    assert not is_adoption(tree, live(OTHER, tree["metadata"]["annotations"]))
    assert not is_adoption(desired(), live(desired()["spec"]["template"]))


def test_an_adopted_template_is_given_up_on_request() -> None:
    again = adapted(desired(), live(OTHER, {names.ADOPTED: "no"}))
    assert again["spec"]["template"] == desired()["spec"]["template"]
