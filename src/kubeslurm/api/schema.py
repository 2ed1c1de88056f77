"""Turns our structs into the structural OpenAPI schemas that the API server takes."""

import msgspec

from kubeslurm.api.meta import Tree
from kubeslurm.api.resource import Resource

_INT_OR_STRING: Tree = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_STANDARD: Tree = {
    "apiVersion": {"type": "string", "description": "Version of the API this object is written in."},
    "kind": {"type": "string", "description": "Kind of this object."},
    "metadata": {"type": "object"},
}


def schema_of(resource: type[Resource]) -> Tree:
    """The openAPIV3Schema of one kind."""
    _, components = msgspec.json.schema_components([resource])
    root = components[resource.__name__]
    parts = {part: _structural(root["properties"][part], components) for part in ("spec", "status")}
    return {
        "description": root["description"],
        "type": "object",
        "required": ["spec"],
        "properties": _STANDARD | parts,
    }


def _structural(field: Tree, components: dict[str, Tree]) -> Tree:
    """One field's schema with references resolved and only the keywords that Kubernetes knows."""
    given = {key: value for key, value in field.items() if key not in ("$ref", "anyOf")}
    if not given.get("description"):
        given.pop("description", None)
    node = _resolved(field, components) | given

    if not node.pop("x-defaulted", False):
        node.pop("default", None)
    if "enum" in node:
        node["type"] = "string"
    for child in ("items", "additionalProperties"):
        if child in node:
            node[child] = _structural(node[child], components)
    node.pop("title", None)
    node.pop("x-required", None)
    return node


def _resolved(field: Tree, components: dict[str, Tree]) -> Tree:
    """The schema behind a reference or a union; a type given explicitly wins over both."""
    if "$ref" in field:
        return _struct(components[field["$ref"].rsplit("/", 1)[1]], components)
    choices = [choice for choice in field.get("anyOf", ()) if choice.get("type") != "null"]
    if not choices or "type" in field:
        return {}
    return _structural(choices[0], components) if len(choices) == 1 else _INT_OR_STRING


def _struct(struct: Tree, components: dict[str, Tree]) -> Tree:
    fields: dict[str, Tree] = struct["properties"]
    required = {*struct["required"], *(name for name, field in fields.items() if field.get("x-required"))}
    properties = {name: _structural(field, components) for name, field in fields.items()}
    return (
        {"description": struct["description"], "type": "object"}
        | ({"required": sorted(required)} if required else {})
        | {"properties": properties}
    )
