"""Endpoints and payload specs that change all the time, while jobs are made and delivered.

Each job must go where the version leads that held when it was made, however late it is
delivered, and whatever kills its worker; what was taken in must never be refused later.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import psycopg
from rig import LEFT, PACE, Outcome, Rig, count

if TYPE_CHECKING:
    from collections.abc import Iterator

# Jobs for each second of the run: 10,000 in the usual one.
JOBS_A_SECOND = 500
CONCURRENCY = 50
QUEUE = "storm"
MADE = """
select j.job_id::text, '/v' || (v.document ->> 'endpoint_version'), j.state, j.last_error_code
from jobq.job as j
join jobq_private.definition_version as v
    on v.type = 'delivery' and v.name = j.kind and v.version = j.delivery_version
where j.queue = 'storm'
"""


class Target(ThreadingHTTPServer):
    """Answers everything with 204, and keeps the paths that each job came to.

    Attributes:
        paths: of each job, where its deliveries came to.
        newest: the version that the next job will be delivered by.
        late: how many deliveries came when their version held no more.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.paths: dict[str, list[str]] = defaultdict(list)
        self.newest = 0
        self.late = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """Pass over connections that killed workers leave."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    """One connection to the target."""

    protocol_version = "HTTP/1.1"
    server: Target

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", "0")))
        self.server.paths[self.headers["idempotency-key"]].append(self.path)
        self.server.late += self.path != f"/v{self.server.newest}"
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Changer(threading.Thread):
    """Puts the endpoint and its payload spec, and pauses it, again and again."""

    def __init__(self, rig: Rig, target: Target) -> None:
        super().__init__(daemon=True)
        self.rig, self.target = rig, target
        self.changes = 0
        with rig.connect() as connection:
            self.put(connection)

    def put(self, connection: psycopg.Connection[Any]) -> None:
        """Make the next version: of the payload spec, whose jobs fit it, and of the endpoint."""
        self.changes += 1
        member = "ab"[self.changes % 2]
        connection.execute(
            "select jobq.put_payload_spec('storm', %s)",
            [json.dumps({"type": "object", "required": [member]})],
        )
        connection.execute(
            "select jobq.put_endpoint('storm', 'HTTP', %s, 'storm', queue => 'storm',"
            " max_attempts => 1000, retry_initial_delay => '0.1 s', max_concurrency => 50)",
            [json.dumps({"url": f"{self.target.url}/v{self.changes}"})],
        )
        self.target.newest = self.changes

    def run(self) -> None:
        with self.rig.connect() as connection:
            while not self.rig.is_over.wait(0.02):
                self.put(connection)
                if self.changes % 20 == 0:
                    connection.execute("select jobq.pause_endpoint('storm')")
                    self.rig.is_over.wait(0.05)
                    connection.execute("select jobq.resume_endpoint('storm')")


def definitions_changed(rig: Rig) -> None:
    """Definitions change, endpoints pause and workers die while deliveries are under way."""
    rig.prepare()
    with rig.connect() as connection:
        connection.execute("select jobq.put_queue('storm', lease => '2 s')")
    target = Target()
    changer = Changer(rig, target)
    rig.workers = [launch(rig) for _ in range(2)]
    changer.start()
    killer = threading.Thread(target=kill_workers, args=[rig], daemon=True)
    killer.start()
    wanted = int(JOBS_A_SECOND * rig.duration)
    enqueue(rig, wanted)
    since = time.monotonic()
    problems: list[str] = []
    with rig.connect() as connection:
        try:
            rig.wait(lambda: count(connection, LEFT) == 0, "", 30 + wanted / PACE)
        except TimeoutError:
            problems.append(f"{count(connection, LEFT)} jobs have not finished")
        rig.is_over.set()
        for thread in (changer, killer):
            thread.join(30)
        made = connection.execute(MADE).fetchall()
    problems += problems_of(made, target, wanted)
    rig.outcome = Outcome(
        acknowledged=wanted,
        lost=wanted - len(target.paths.keys() & {job for job, *_ in made}),
        repeated=sum(len(paths) - 1 for paths in target.paths.values()),
        at_most=rig.faults * CONCURRENCY,
        stall=0.0,
        finished_in=time.monotonic() - since,
        faults=rig.faults + changer.changes,
        problems=problems,
    )
    target.shutdown()


def enqueue(rig: Rig, wanted: int) -> None:
    """Make jobs, one by one and in batches, with keys and without; some do not fit just now."""
    made = 0
    with rig.connect() as connection:
        while made < wanted:
            member = rig.random.choice("ab")
            jobs = [
                {"kind": "storm", "payload": {member: made + n}}
                for n in range(min(wanted - made, rig.random.choice((1, 1, 50))))
            ]
            if rig.random.random() < 0.5:
                jobs[0]["idempotency_key"] = f"{made}"
            try:
                connection.execute("select jobq.enqueue_many(%s)", [json.dumps(jobs)])
            except psycopg.DatabaseError as error:
                if error.sqlstate != "JQ006":
                    raise
            else:
                made += len(jobs)


def launch(rig: Rig) -> subprocess.Popen[bytes]:
    """Start a worker that delivers to this machine."""
    log = (rig.folder / f"{rig.name}.log").open("ab")
    return subprocess.Popen(
        [
            sys.executable, "-m", "jobq_cli", "worker", "--queue", QUEUE, "--no-metrics",
            "--concurrency", str(CONCURRENCY),
        ],
        env={**os.environ, "DATABASE_URL": rig.url, "JOBQ_DELIVERY_ALLOW": "127.0.0.0/8"},
        stdin=subprocess.DEVNULL, stdout=log, stderr=log,
    )  # fmt: skip


def kill_workers(rig: Rig) -> None:
    """Kill a worker now and then, and start another."""
    while not rig.is_over.wait(rig.random.uniform(4.0, 10.0)):
        place = rig.random.randrange(len(rig.workers))
        rig.workers[place].kill()
        rig.workers[place].wait()
        rig.faults += 1
        rig.workers[place] = launch(rig)


def problems_of(made: list[Any], target: Target, wanted: int) -> Iterator[str]:
    """Yield what must not be of the jobs that were made."""
    if len(made) != wanted:
        yield f"{len(made)} jobs are stored of {wanted}"
    if target.late == 0:
        yield "no delivery came after its version had been replaced"
    for job, path, state, code in made:
        if state != "succeeded":
            yield f"job {job} is {state}: {code}"
        elif set(target.paths[job]) != {path}:
            yield f"job {job} of {path} went to {target.paths[job]}"
