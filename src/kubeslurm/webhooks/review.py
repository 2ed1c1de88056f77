"""The AdmissionReview of the API server, and our answer to it."""

import msgspec

from kubeslurm.api.meta import Tree

VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")


class Request(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The operation, and the object before and after it."""

    uid: str
    operation: str = ""
    namespace: str = ""
    name: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class Review(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The envelope of a request; the answer has the same API version."""

    api_version: str
    kind: str
    request: Request


class Decision(msgspec.Struct, frozen=True):
    """Errors refuse the object; warnings are shown to its author."""

    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


ALLOWED = Decision()
_decoder = msgspec.json.Decoder(Review)


def decode(body: bytes) -> Review:
    """Decodes an AdmissionReview; raises ValueError when it is something else."""
    review = _decoder.decode(body)
    if review.api_version not in VERSIONS or review.kind != "AdmissionReview":
        raise ValueError(f"{review.api_version} {review.kind} is not an AdmissionReview of {' or '.join(VERSIONS)}")
    return review


def answer(review: Review, decision: Decision) -> Tree:
    """The AdmissionReview with our decision."""
    response: Tree = {"uid": review.request.uid, "allowed": not decision.errors}
    if decision.errors:
        message = "; ".join(decision.errors)
        response["status"] = {"status": "Failure", "code": 422, "reason": "Invalid", "message": message}
    if decision.warnings:
        response["warnings"] = list(decision.warnings)
    return {"apiVersion": review.api_version, "kind": "AdmissionReview", "response": response}
