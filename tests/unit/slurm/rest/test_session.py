"""An answer of slurmrestd in pieces, as the network may cut it."""

import asyncio
import gzip

import pytest

from kubeslurm.slurm.rest.session import _FirstAnswerOnly

BODY = b"Unable to find"
ANSWER = b"HTTP/1.1 404 NOT FOUND\r\nConnection: Close\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


def protocol() -> _FirstAnswerOnly:
    made = _FirstAnswerOnly(asyncio.get_running_loop())
    made.set_response_params(read_until_eof=True)
    return made


async def answer(made: _FirstAnswerOnly, *pieces: bytes) -> tuple[int, bytes]:
    for piece in pieces:
        made.data_received(piece)
    message, payload = await made.read()
    return message.code, await payload.read()


@pytest.mark.parametrize("cut", range(1, 2 * len(ANSWER)))
async def test_the_second_copy_is_cut_off_wherever_the_network_cuts(cut: int) -> None:
    made, sent = protocol(), 2 * ANSWER
    assert await answer(made, sent[:cut], sent[cut:]) == (404, BODY)
    assert made.exception() is None


async def test_single_bytes_are_an_answer_too() -> None:
    made, sent = protocol(), 2 * ANSWER
    assert await answer(made, *(sent[at : at + 1] for at in range(len(sent)))) == (404, BODY)


async def test_only_the_head_of_an_answer_says_where_it_ends() -> None:
    body = ANSWER + b"and more"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert await answer(protocol(), head, body[:-8], b"and more") == (200, body)


async def test_each_answer_on_a_kept_connection_is_looked_at() -> None:
    made = protocol()
    assert await answer(made, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") == (200, b"{}")
    made.set_response_params(read_until_eof=True)
    assert await answer(made, ANSWER[:20], ANSWER[20:] + ANSWER) == (404, BODY)


async def test_a_long_compressed_answer_is_unpacked_to_its_end() -> None:
    """The library puts a part of it aside, and comes back for it without new input."""
    packed = gzip.compress(bytes(1 << 22))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    assert await answer(protocol(), head, packed) == (200, bytes(1 << 22))
