"""What is read from slurmdbd, and how its absence shows."""

from typing import Any

import pytest

from kubeslurm.slurm.errors import NotServed, SlurmError, Unreachable
from kubeslurm.slurm.rest.client import SlurmClient
from kubeslurm.slurm.rest.database import SlurmdbClient
from kubeslurm.slurm.rest.models import Association
from kubeslurm.slurm.rest.transport import Transport
from tests.unit.slurm.slurmrestd import EMPTY, Slurmrestd

ASKED = "GET slurmdb/associations/?user=ann&cluster=one"
ROW = {"account": "physics", "user": "ann", "cluster": "one", "partition": "", "qos": ["normal", "high"]}


def transport(server: Slurmrestd) -> Transport:
    return Transport(["http://a"], lambda: "token", http=server.http)


async def test_associations_of_a_user_are_read_from_slurmdbd() -> None:
    server = Slurmrestd("v0.0.44")
    server.answers[ASKED] = (200, {"associations": [{**ROW, "is_default": True, "id": {"id": 3}}], **EMPTY})
    found = await SlurmdbClient(transport(server)).associations("ann", "one")
    assert found == (Association("physics", "ann", "one", "", ("normal", "high"), is_default=True),)


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ((404, b"Unable to find requested URL endpoint."), NotServed),
        ((500, {"errors": [{"error_number": 7000, "error": "Unable to connect to database"}]}), Unreachable),
        ((200, EMPTY), SlurmError),
    ],
)
async def test_no_answer_of_slurmdbd_is_a_failure_and_not_an_empty_list(
    answer: tuple[int, Any], failure: type[SlurmError]
) -> None:
    server = Slurmrestd()
    server.answers[ASKED] = answer
    with pytest.raises(failure):
        await SlurmdbClient(transport(server)).associations("ann", "one")


async def test_both_clients_share_one_transport() -> None:
    server = Slurmrestd()
    server.answers = {ASKED: (200, {"associations": [], **EMPTY}), "GET jobs/state/": (200, EMPTY)}
    shared = transport(server)
    assert await SlurmdbClient(shared).associations("ann", "one") == ()
    assert await SlurmClient(shared).jobs_state() == ()
    assert server.asked == [f"a {ASKED}", "a GET jobs/state/"]
