from typing import Any

from kubeslurm.kube.ownership import migration

OURS = "kubeslurm-controller"


def entry(manager: str, fields: dict[str, Any], operation: str = "Update", **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsV1": fields, **more}


def live(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "metadata": {"resourceVersion": "7", "managedFields": list(entries)}}


def test_fields_of_all_former_managers_are_merged_with_ours() -> None:
    other = entry("kube-controller-manager", {"f:status": {}}, subresource="status")
    patch = migration(
        live(
            entry("manager", {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:a": {}}}}}),
            entry(OURS, {"f:spec": {"f:template": {"f:spec": {"f:b": {}}}}}, "Apply"),
            entry("slurm-operator", {"f:metadata": {"f:labels": {}}}),
            other,
        ),
        ("manager", "slurm-operator"),
        OURS,
    )
    replaced, guard = patch
    kept, merged = replaced["value"]
    assert kept == other
    assert (merged["manager"], merged["operation"]) == (OURS, "Apply")
    assert merged["fieldsV1"] == {
        "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:a": {}, "f:b": {}}}},
        "f:metadata": {"f:labels": {}},
    }
    assert guard == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def test_status_and_spec_are_migrated_separately() -> None:
    obj = live(
        entry("manager", {"f:spec": {}}), entry("manager", {"f:status": {"f:replicas": {}}}, subresource="status")
    )
    replaced, _ = migration(obj, ("manager",), OURS, subresource="status")
    kept, merged = replaced["value"]
    assert kept["fieldsV1"] == {"f:spec": {}}
    assert merged["subresource"] == "status"
    assert merged["fieldsV1"] == {"f:status": {"f:replicas": {}}}


def test_nothing_is_patched_when_no_former_manager_owns_anything() -> None:
    assert migration(live(entry("kubectl", {"f:spec": {}})), ("manager",), OURS) == []
    assert migration(live(entry("manager", {"f:spec": {}}, "Apply")), ("manager",), OURS) == []


def test_fields_of_another_api_version_are_not_migrated() -> None:
    obj = live(entry("manager", {"f:spec": {}}) | {"apiVersion": "apps/v1beta1"})
    assert migration(obj, ("manager",), OURS) == []
