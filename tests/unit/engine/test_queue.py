import asyncio
import math

import pytest

from kubeslurm.engine.queue import RETRY_BASE, Closed, Queue

pytestmark = pytest.mark.looptime


def drain(queue: Queue[str]) -> list[str]:
    taken = []
    while (key := queue.take()) is not None:
        taken.append(key)
    return taken


async def test_a_key_waits_at_most_once() -> None:
    queue: Queue[str] = Queue()
    for key in ("a", "b", "a"):
        queue.add(key)
    assert drain(queue) == ["a", "b"]


async def test_an_add_while_processing_gives_exactly_one_more_pass() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a")
    queue.add("a")
    assert queue.take() is None, "a key is never handled twice at the same time"
    queue.done("a")
    assert queue.take() == "a"
    queue.done("a")
    assert queue.take() is None


async def test_urgent_keys_go_before_those_of_the_first_list() -> None:
    queue: Queue[str] = Queue()
    queue.add("listed-1", urgent=False)
    queue.add("listed-2", urgent=False)
    queue.add("changed")
    queue.add("listed-2")
    assert drain(queue) == ["changed", "listed-2", "listed-1"]


async def test_of_several_delays_the_earliest_counts() -> None:
    queue: Queue[str] = Queue()
    queue.add_after("a", 10)
    queue.add_after("a", 3)
    queue.add_after("a", 20)
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert await queue.get() == "a"
    assert loop.time() - started == pytest.approx(3)
    queue.done("a")
    await asyncio.sleep(30)
    assert queue.take() is None


async def test_a_clock_that_is_a_rounding_error_short_of_the_deadline_has_reached_it() -> None:
    now = 0.0
    queue: Queue[str] = Queue(clock=lambda: now)
    queue.add_after("a", 0.3)
    now = math.nextafter(0.3, 0.0)
    assert queue.take() == "a", "otherwise the timer would be set again and again for the same moment"


async def test_a_waiting_task_is_woken_by_a_delay_that_becomes_shorter() -> None:
    queue: Queue[str] = Queue()
    queue.add_after("late", 100)
    task = asyncio.create_task(queue.get())
    await asyncio.sleep(1)
    queue.add_after("soon", 1)
    started = asyncio.get_running_loop().time()
    assert await task == "soon"
    assert asyncio.get_running_loop().time() - started == pytest.approx(1)


async def test_each_waiting_task_gets_a_key() -> None:
    queue: Queue[str] = Queue()
    tasks = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in "abc":
        queue.add(key)
    assert sorted(await asyncio.gather(*tasks)) == ["a", "b", "c"]


async def test_a_cancelled_task_does_not_lose_a_key() -> None:
    queue: Queue[str] = Queue()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 1) == "a"


async def test_failures_back_off_exponentially_until_reset() -> None:
    queue: Queue[str] = Queue()
    assert [queue.retry("a") for _ in range(4)] == [RETRY_BASE * factor for factor in (1, 2, 4, 8)]
    assert queue.retry("b") == RETRY_BASE
    queue.reset_backoff("a")
    assert queue.retry("a") == RETRY_BASE


async def test_back_off_ends_at_five_minutes() -> None:
    queue: Queue[str] = Queue()
    assert max(queue.retry("a") for _ in range(40)) == 300


async def test_a_retry_waits_at_least_as_long_as_the_server_asked() -> None:
    queue: Queue[str] = Queue()
    assert queue.retry("a", after=7) == 7


async def test_many_failures_are_spread_by_the_token_bucket() -> None:
    queue: Queue[int] = Queue()
    delays = [queue.retry(number) for number in range(200)]
    assert delays[0] == RETRY_BASE
    assert delays[-1] == pytest.approx(10, abs=0.2)


async def test_a_window_spaces_the_passes_but_not_the_first() -> None:
    queue: Queue[str] = Queue(window=0.5)
    loop = asyncio.get_running_loop()
    started = loop.time()
    passes = []
    queue.add("a")
    for _ in range(3):
        key = await queue.get()
        passes.append(round(loop.time() - started, 3))
        queue.add("a")
        queue.done(key)
        queue.add("a")
    assert passes == [0, 0.5, 1.0]


async def test_a_window_holds_for_delayed_keys_too() -> None:
    queue: Queue[str] = Queue(window=1.0)
    loop = asyncio.get_running_loop()
    queue.add("a")
    assert await queue.get() == "a"
    started = loop.time()
    queue.done("a")
    queue.add_after("a", 0.2)
    assert await queue.get() == "a"
    assert loop.time() - started == pytest.approx(1.0)


async def test_closing_the_queue_ends_waiting_tasks() -> None:
    queue: Queue[str] = Queue()
    task = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.close()
    with pytest.raises(Closed):
        await task
    queue.add("a")
    assert queue.depth == 0


async def test_depth_and_age_are_those_of_ready_keys() -> None:
    queue: Queue[str] = Queue()
    queue.add("a")
    queue.add_after("b", 60)
    await asyncio.sleep(5)
    assert (queue.depth, queue.delayed) == (1, 1)
    assert queue.oldest_age == pytest.approx(5)
    queue.take()
    assert queue.oldest_age == 0
