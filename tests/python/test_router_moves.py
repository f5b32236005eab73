"""Jobs that move off a drained shard of a cluster, and its removal."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from test_router import KEYS, Routed, made, routed

from jobq import Client
from jobq.errors import JobNotFound
from jobq_sharding.cluster import ShardedClient
from jobq_sharding.shards import choose_shard, shard_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers import Cluster

__all__ = ["made", "routed"]

pytestmark = pytest.mark.xdist_group("pg15")

LIVE = """
    select to_jsonb(j) - '{due_at,transition_slot,key_id}'::text[] from jobq_private.job as j
    order by job_id
"""
WORKING = "select jobq.heartbeat('w', '{}', '{}', '{default}')"


def rows(url: str, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
    """The rows of a statement on a shard."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), arguments or None)
        return cursor.fetchall() if cursor.description else []


def live(url: str) -> dict[str, Any]:
    """The live jobs of a shard, by their ids."""
    return {job["job_id"]: job for (job,) in rows(url, LIVE)}


def drain(routed: Routed, *more: str) -> None:
    """Have shard 1 get no new keys."""
    said = routed.command("drain", "1", "--wait", "0", "--login", routed.login, *more)
    assert "receives no new keys" in said


def test_waiting_jobs_move_as_they_are(routed: Routed) -> None:
    later = datetime.now(UTC) + timedelta(days=1, microseconds=7)
    source = routed.shards[1]
    with Client(routed.url) as client:
        client.put_limit("default", "customer-7", 1)
    with Client(source) as one:
        one.enqueue("work", {"n": [1.5, None, "ключ"]}, priority=-3, run_at=later, max_attempts=4)
        one.enqueue("work", idempotency_key="once", metadata={"a": 1})
        for _ in range(3):
            one.enqueue("work", concurrency_key="customer-7")
        failed = one.enqueue("work", priority=32000)
        ((_, attempt),) = rows(
            source, "select job_id, attempt from jobq.claim('{default}', 'w', 1)"
        )
        rows(source, "select jobq.fail(%s, %s, 'boom', retry_in => '1 h')", failed.job_id, attempt)
        parent = one.enqueue("work")
        one.enqueue("work", after=[parent.job_id])
        one.enqueue("work", dedup_key="only")
        running = one.enqueue("work", priority=31000)
        rows(source, "select from jobq.claim('{default}', 'w', 1)")
    drain(routed)
    before = live(source)
    said = routed.command("move", "1", "--to", "0", "--login", routed.login)
    assert said.splitlines()[0] == "6 jobs moved to shard 0"
    assert set(said.splitlines()[1:]) == {
        "shard 1 still has 1 blocked jobs",
        "shard 1 still has 1 running jobs",
        "shard 1 still has 2 queued jobs",
    }
    stay, moved = live(source), live(routed.shards[0])
    assert str(parent.job_id) in stay and str(running.job_id) in stay
    assert before == stay | moved and not {*stay} & {*moved}
    assert moved[str(failed.job_id)]["attempt"] == 1
    assert moved[str(failed.job_id)]["state"] == "retrying"
    claimable = "select count(*) from jobq_private.job where (due_at is null) = (key_id is null)"
    assert rows(routed.shards[0], claimable) == [(0,)]
    with Client(routed.url) as client, ShardedClient(routed.shards) as direct:
        for asked in (client, direct):
            for job_id in before:
                assert str(asked.get(job_id).job_id) == job_id
            once = asked.enqueue("work", idempotency_key="once")
            assert not once.created and str(once.job_id) in moved
            child = asked.enqueue("work", after=[failed.job_id])
            assert asked.get(child.job_id).state == "blocked"
            assert str(child.job_id) in live(routed.shards[0])
            assert asked.cancel(child.job_id) == "cancelled"
        both = [parent.job_id, failed.job_id]
        assert {*client.change_many(both, priority=5)} == {*both}
        assert {*direct.change_many(both, priority=6)} == {*both}
    # What moved runs there, one of a key at a time.
    ran = rows(routed.shards[0], "select job_id from jobq.claim('{default}', 'w', 9)")
    keys = [moved[str(job_id)]["concurrency_key"] for (job_id,) in ran]
    assert sorted(keys, key=lambda key: (key is None, key)) == ["customer-7", None]


def test_a_delivery_that_waits_for_a_paused_endpoint_is_resumed_where_it_moves(
    routed: Routed,
) -> None:
    for url in routed.shards:
        rows(url, "select jobq.put_endpoint('send', 'HTTP', '{\"url\": \"https://a.example\"}')")
        rows(url, "select jobq.pause_endpoint('send')")
    with Client(routed.shards[1]) as one:
        job = one.enqueue("send")
    before = live(routed.shards[1])
    claim = "select job_id from jobq.claim('{default}', 'w')"
    assert rows(routed.shards[1], claim) == []
    assert live(routed.shards[1]) != before  # postponed
    drain(routed)
    said = routed.command("move", "1", "--to", "0", "--login", routed.login)
    assert said == "1 jobs moved to shard 0\n"
    assert live(routed.shards[0])[str(job.job_id)]["run_at"] == before[str(job.job_id)]["run_at"]
    assert rows(routed.shards[0], claim) == []
    rows(routed.shards[0], "select jobq.resume_endpoint('send')")
    assert rows(routed.shards[0], claim) == [(job.job_id,)]


def test_a_job_for_which_a_client_waits_stays(routed: Routed) -> None:
    with Client(routed.shards[1]) as one:
        job, other = one.enqueue("work"), one.enqueue("work")
    drain(routed)
    words = ("move", "1", "--to", "0", "--login", routed.login)
    with psycopg.connect(routed.shards[1], autocommit=True) as connection:
        connection.execute("listen jobq_ended")
        connection.execute("select jobq.wait(%s)", [job.job_id])
        assert routed.command(*words).splitlines() == [
            "1 jobs moved to shard 0", "shard 1 still has 1 queued jobs",
        ]  # fmt: skip
        assert [*live(routed.shards[0])] == [str(other.job_id)]
    assert routed.command(*words) == "1 jobs moved to shard 0\n"


@pytest.mark.parametrize("receipts", [0, 1, 2])
def test_a_move_that_ended_between_two_steps_is_finished(routed: Routed, receipts: int) -> None:
    with Client(routed.shards[1]) as one:
        jobs = one.enqueue_many([{"kind": "work", "payload": n} for n in range(7)])
    drain(routed)
    for url in (*routed.shards, routed.url):
        rows(url, "select jobq_internal.put_successor(1, 0)")
    sent = rows(routed.shards[1], "select job_id, job from jobq_internal.send_jobs(5)")
    assert len(sent) == 5 and len(live(routed.shards[1])) == 2
    stored = [
        rows(
            routed.shards[0], "select jobq_internal.receive_jobs(%s)",
            json.dumps([job for _, job in sent]),
        )
        for _ in range(receipts)
    ]  # fmt: skip
    assert stored == [[(5,)], [(0,)]][:receipts]
    if receipts:  # what has arrived may run and end before the rest is done
        done = rows(routed.shards[0], "select job_id, attempt from jobq.claim('{default}', 'w', 2)")
        for job_id, attempt in done:
            rows(routed.shards[0], "select jobq.complete(%s, %s)", job_id, attempt)
    assert "jobs on the move" in routed.command("remove", "1", "--login", routed.login)
    said = routed.command("move", "1", "--to", "0", "--login", routed.login)
    assert said == f"{2 if receipts else 7} jobs moved to shard 0\n"
    assert live(routed.shards[1]) == {}
    assert len(live(routed.shards[0])) == 7 - (2 if receipts else 0)
    with Client(routed.url) as client:
        assert [client.get(job.job_id).payload for job in jobs] == [*range(7)]


@pytest.mark.prove
def test_a_move_that_is_killed_moves_each_job_once(routed: Routed) -> None:
    chance = random.Random(33)
    with Client(routed.shards[1]) as one:
        for _ in range(4):
            one.enqueue_many([{"kind": "work"} for _ in range(1000)])
    drain(routed)
    before = {*live(routed.shards[1])}
    command = [
        sys.executable, "-m", "jobq_cli", "cluster", "move", "1", "--to", "0",
        "--login", routed.login, "--database", routed.url,
    ]  # fmt: skip
    killed = 0
    counted = "select count(*) from jobq_private.moved_job"
    with psycopg.connect(routed.shards[1], autocommit=True) as watch:
        for _ in range(4):
            (seen,) = watch.execute(counted).fetchone() or (0,)
            with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
                while process.poll() is None:
                    if (watch.execute(counted).fetchone() or (0,))[0] > seen:
                        time.sleep(chance.random() * 0.15)
                        process.send_signal(signal.SIGKILL)
                        break
                killed += process.wait() == -signal.SIGKILL
    assert killed >= 2
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "moved to shard 0" in done.stdout
    assert {*live(routed.shards[0])} == before and live(routed.shards[1]) == {}


def test_an_interrupted_move_is_reported_until_its_remedy_is_followed(routed: Routed) -> None:
    with Client(routed.shards[1]) as one:
        one.enqueue_many([{"kind": "work"} for _ in range(500)])
    drain(routed)
    before = {*live(routed.shards[1])}
    command = [
        sys.executable, "-m", "jobq_cli", "cluster", "move", "1", "--to", "0",
        "--login", routed.login, "--database", routed.url,
    ]  # fmt: skip
    on_the_move = "select count(*) from jobq_private.moved_job where job is not null"
    with psycopg.connect(routed.shards[0]) as holder, subprocess.Popen(command) as move:
        holder.execute("lock table jobq_private.moved_job")  # the successor does not take them
        while rows(routed.shards[1], on_the_move) == [(0,)]:
            assert move.poll() is None
            time.sleep(0.01)
        move.send_signal(signal.SIGKILL)
    assert interrupted(routed.shards[1]) == [(True, None)], "a move that goes on is no problem"
    rows(routed.shards[1], "update jobq_private.moved_job set moved_at = now() - interval '2 min'")
    [(is_ok, remedy)] = interrupted(routed.shards[1])
    assert not is_ok
    _, _, words = remedy.partition("jobq cluster ")
    said = routed.command(
        *words.replace(' --database "$ROUTER"', "").split(), "--login", routed.login
    )
    assert "moved to shard 0" in said
    assert interrupted(routed.shards[1]) == [(True, None)]
    assert {*live(routed.shards[0])} == before and live(routed.shards[1]) == {}


def interrupted(url: str) -> list[tuple[Any, ...]]:
    """What health() reports of interrupted moves."""
    return rows(
        url, "select is_ok, remedy from jobq.health(part => 'jobs') where subject = 'moves'"
    )


def test_a_shard_must_be_drained_before_its_jobs_move(routed: Routed) -> None:
    for words in (("move", "1", "--to", "0"), ("remove", "1")):
        assert "still receives new keys; drain it first" in routed.command(
            *words, "--login", routed.login
        )
    drain(routed)
    with Client(routed.shards[1]) as one:
        one.put_queue("mail", max_depth=5)
    said = routed.command("move", "1", "--to", "0", "--login", routed.login)
    assert "different definitions" in said and "queue mail" in said
    assert "the cluster has no shard 7" in routed.command(
        "move", "1", "--to", "7", "--login", routed.login
    )


def test_a_drained_shard_is_removed_when_it_has_no_jobs(
    routed: Routed, clusters: Callable[[str], Cluster]
) -> None:
    login = ("--login", routed.login)
    name = next(key for key in KEYS if choose_shard([0, 1], key) == 1)
    batch = [{"kind": "work", "idempotency_key": key} for key in KEYS]
    with Client(routed.url) as client:
        before = client.enqueue_many(batch)
        client.create_schedule(name, "work", cron="@daily")
        done = next(job.job_id for job in before if shard_of(job.job_id) == 1)
        assert client.cancel(done) == "cancelled"
        drain(routed)
        assert "shard 1 still has" in routed.command("remove", "1", "--forget-keys", *login)
        routed.command("move", "1", "--to", "0", *login)
        said = routed.command("remove", "1", *login)
        assert "idempotency keys that are still valid" in said and "1 idempotency keys" in said
        said = routed.command("remove", "1", "--forget-keys", *login)
        assert "shard 1 still has 1 schedules" in said
        client.retire_schedule(name)
        said = routed.command("remove", "1", "--forget-keys", *login)
        assert said.splitlines() == [
            "shard 1 is removed; its ids lead to shard 0", "forgotten: 1 idempotency keys",
        ]  # fmt: skip
    rows(routed.shards[1], "drop schema jobq, jobq_private cascade")  # nobody asks it any more
    with Client(routed.url) as client, ShardedClient(routed.shards[:1]) as direct:
        for asked in (client, direct):
            again = asked.enqueue_many(batch)
            for job in before:
                if job.job_id == done:
                    with pytest.raises(JobNotFound):
                        asked.get(done)
                else:
                    assert asked.get(job.job_id).state == "queued"
            kept = {job.job_id for job in before} - {done}
            assert len(kept & {job.job_id for job in again}) == len(kept)
            assert sum(queue.queued for queue in asked.queue_stats()) == len(KEYS)
            assert len({job.job_id for job in asked.list_jobs(max_jobs=100)}) >= len(KEYS)
        client.create_schedule(name, "work", cron="@daily")
        assert direct.get_schedule(name).name == client.get_schedule(name).name == name
    assert [json.loads(line)["shard_id"] for line in routed.command(
        "list", "--json", *login
    ).splitlines()] == [0]  # fmt: skip
    with clusters("18").database() as third:
        assert "added as shard 2" in routed.command("add", third, "--wait", "0", *login)
        assert routed.command("check", *login) == "the shards are identical\n"
        with Client(routed.url) as client, ShardedClient([third, routed.shards[0]]) as direct:
            fresh = client.enqueue_many([{**job, "kind": "new"} for job in batch])
            assert {shard_of(job.job_id) for job in fresh} == {0, 2}
            for asked in (client, direct):
                assert [asked.get(job.job_id).kind for job in fresh] == ["new"] * len(KEYS)
                assert asked.get(next(iter(kept))).state == "queued"
    said = routed.command("init", "--shard", routed.shards[0], "--shard", routed.shards[0])
    assert "named twice" in said
