from typing import Any

import msgspec

from kubeslurm.api import names
from kubeslurm.api.views import StatefulSet
from kubeslurm.build.common.adoption import adapted, is_of_another_operator


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


def notes(tree: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = tree["metadata"]["annotations"]
    return found


def template(tree: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = tree["spec"]["template"]
    return found


REQUEST = {"image": "given"}


def test_a_new_workload_is_made_as_desired() -> None:
    tree = adapted(desired(), None, REQUEST)
    assert tree["spec"] == desired()["spec"]
    assert notes(tree).keys() == {names.REQUESTED, names.TEMPLATE}


def test_what_kubernetes_cannot_change_stays() -> None:
    assert adapted(desired(), live(template(desired())))["spec"]["serviceName"] == "theirs"


def test_the_template_of_another_operator_is_kept_with_its_hash_annotations() -> None:
    tree = adapted(desired(), live(OTHER), REQUEST)
    assert template(tree) == OTHER
    assert notes(tree).keys() == {names.REQUESTED}


def test_an_adopted_template_stays_for_as_long_as_nobody_changes_the_spec() -> None:
    noted = notes(adapted(desired(), live(OTHER), REQUEST))
    assert template(adapted(desired(), live(OTHER, noted), REQUEST)) == OTHER
    assert template(adapted(desired("of a later release"), live(OTHER, noted), REQUEST)) == OTHER


def test_a_changed_spec_replaces_the_adopted_template() -> None:
    noted = notes(adapted(desired(), live(OTHER), REQUEST))
    assert template(adapted(desired("newer"), live(OTHER, noted), {"image": "newer"})) == template(desired("newer"))


def test_a_release_that_builds_another_template_replaces_no_pod() -> None:
    made = adapted(desired(), None, REQUEST)
    found = live(template(made), notes(made))
    later = adapted(desired("of a later release"), found, REQUEST)
    assert template(later) == template(desired())
    assert notes(later) == notes(made)


def test_the_next_change_of_the_spec_brings_the_template_of_the_new_release() -> None:
    made = adapted(desired(), None, REQUEST)
    later = adapted(desired("of a later release"), live(template(made), notes(made)), {"image": "other"})
    assert template(later) == template(desired("of a later release"))


def test_an_edit_of_a_template_of_this_release_is_undone() -> None:
    edited = template(desired("edited"))
    assert template(adapted(desired(), live(edited, notes(adapted(desired(), None, REQUEST))), REQUEST)) == template(
        desired()
    )


def test_without_a_request_a_changed_template_is_applied() -> None:
    made = adapted(desired(), None)
    later = adapted(desired("of a later release"), live(template(made), notes(made)))
    assert template(later) == template(desired("of a later release"))


def test_an_adoption_is_one_only_the_first_time() -> None:
    assert is_of_another_operator(live(OTHER))
    assert not is_of_another_operator(live(OTHER, notes(adapted(desired(), live(OTHER), REQUEST))))
    assert not is_of_another_operator(live(template(desired())))


def test_a_kept_template_is_given_up_on_request() -> None:
    again = adapted(desired(), live(OTHER, {names.REQUESTED: "no"}), REQUEST)
    assert template(again) == template(desired())
