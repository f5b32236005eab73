"""Durable steps: later attempts do not repeat the recorded steps of earlier ones.

A step is a coroutine. In other handlers than coroutines it never suspends.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec
from psycopg import AsyncConnection, Connection
from psycopg.types.string import TextLoader

from jobq.calls.arguments import encode
from jobq.database import awaited, finished
from jobq.errors import (
    EventTimeout,
    InvalidArgument,
    JobqError,
    PayloadInvalid,
    PayloadTooLarge,
    StepInvalid,
    translate,
)
from jobq.models import Answer, Input, Json
from jobq.redaction import error_text
from jobq.registry.children import Arrived, Child, ChildCall, Mailbox, Source, value_of_end
from jobq.registry.outcomes import OUTCOMES, span_of
from jobq.registry.settlement import LONGEST_WAIT, Suspended
from jobq.registry.streams import Call, Chunks, Stream
from jobq.tracing import with_trace

SAVE_STEP: Final = "select jobq.save_step(%s, %s, %s, %s)"
LIST_STEPS: Final = "select name, value from jobq_internal.read_steps(%s, %s)"
LIST_INPUTS: Final = (
    "select parent_id, name, kind, state, result, after_failure from jobq_internal.list_inputs(%s)"
)
WAIT_FOR: Final = "select outcome, payload from jobq.wait_for(%s, %s, %s, %s)"
ASK: Final = "select outcome, payload from jobq.ask(%s, %s, %s, %s, %s, %s)"
WAIT_ANY: Final = "select event, outcome, payload from jobq.wait_any(%s, %s, %s, %s, %s)"
START_CHILDREN: Final = "select child_id from jobq.start_children(%s, %s, %s)"
CALL_CHILDREN: Final = "select outcome, ends from jobq.call_children(%s, %s, %s)"

CALL: Final = "the payload of a call must be JSON"
# Characters of a step's or an event's name, the database's limit.
MAX_NAME: Final = 256
MAX_QUESTION_NAME: Final = 249
MAX_MAILBOX: Final = 200
LONGEST_STEP_DELAY: Final = timedelta(hours=1)


class Steps:
    """The steps of one attempt.

    Args:
        call: runs the statements that record them.
        job_id: the job.
        attempt: its attempt; the first one need not read recorded steps.
        is_awaited: whether the handler is a coroutine, which awaits its steps.
        is_fork: whether the first attempt has recorded steps, too: those of another job.
    """

    def __init__(
        self, call: Call, job_id: UUID, attempt: int, *, is_awaited: bool, is_fork: bool = False
    ) -> None:
        self.query = call
        self._job_id = job_id
        self._attempt = attempt
        self._is_awaited = is_awaited
        self._known: Mapping[str, Json] | None = {} if attempt == 1 and not is_fork else None
        self._counts: Counter[str] = Counter()
        self._names: set[str] = set()
        self._sleeps = 0
        self._waits: Counter[str] = Counter()
        self._messages: Counter[str] = Counter()
        self.chunks = Chunks(call, job_id, attempt, is_awaited=is_awaited)

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: object,
        retries: int = 0,
        retry_delay: timedelta | float = 1.0,
        timeout: timedelta | float | None = None,
        **kwargs: object,
    ) -> Any:  # noqa: ANN401 - what the function returns
        """Call a function once, and record its result for later attempts.

            charge_id = await context.step("charge", charge, order)

        A recorded step is not called again by any attempt. A step that was interrupted before
        it was recorded is called again. In a transactional handler, the step is recorded on the
        handler's connection and commits with the rows written there.

        Args:
            name: 1 to 256 characters. The second step of a name is recorded as ``name#2``,
                so steps with the same name must run in the same order in each attempt.
            function: the function; in a coroutine handler it may be a coroutine function.
            *args: arguments of the function.
            retries: how often to call the function again after an exception. Each failed call is
                recorded as ``name!1`` and so on, so a crash does not start the count anew.
                Outcomes such as `Permanent` are not retried.
            retry_delay: how long the job waits before the first retry, as by `sleep`, a timedelta
                or seconds; doubles with each retry, up to one hour.
            timeout: timeout of each call, a timedelta or seconds; only for a coroutine function.
                Then TimeoutError is raised.
            **kwargs: arguments of the function; use functools.partial for names used above.

        Returns:
            The function's result after a round trip through JSON, in the first attempt too.

        Raises:
            StepInvalid: the name is too long, or the result is not JSON or larger than 1 MiB.
                The job is then dead.
            LeaseLost: this attempt has lost its lease.
        """
        call: Callable[[], Any] = partial(function, *args, **kwargs)
        if type(retries) is not int or retries < 0:
            raise StepInvalid("retries must be a number from 0", detail=f"{retries!r:.80}")
        delay = min(
            max(span_of("retry_delay", retry_delay, StepInvalid), timedelta(0)), LONGEST_STEP_DELAY
        )
        failure = own = self._own_name(name)
        if retries:
            while any(f"{failure}!{n}" in self._names for n in range(1, retries + 1)):
                failure += "!"  # another step has the name of a failed call
            _check_name("step", f"{failure}!{retries}")
            self._names.update(f"{failure}!{n}" for n in range(1, retries + 1))
        if timeout is not None:
            call = _timed(own, call, span_of("timeout", timeout, StepInvalid))
        return self._run(self._step(own, call, failure, retries, delay))

    def sleep(self, until: datetime | timedelta | float) -> Any:  # noqa: ANN401 - None, or awaited
        """Continue later.

        The job is released until then, without counting the attempt. The handler then starts
        again, and its recorded steps return their saved results.

        Args:
            until: a time with a time zone; or a duration from now, as a timedelta or in seconds;
                at most 36500 days.

        Raises:
            StepInvalid: it is too far away, or has no time zone. The job is then dead.
        """
        if isinstance(until, datetime):
            if until.tzinfo is None:
                raise StepInvalid("the moment to sleep until needs a time zone")
            pause = until - datetime.now(UTC)
        else:
            pause = span_of("a sleep", until, StepInvalid)
        if pause > LONGEST_WAIT:
            raise StepInvalid("a sleep must be of at most 36500 days", detail=str(until))
        self._sleeps += 1
        event = f"sleep:{self._job_id}:{self._sleeps}"
        return self._run(self._waited(event, max(pause, timedelta(0))))

    def wait_for(self, event: str, timeout: timedelta | float | None = None) -> Any:  # noqa: ANN401 - the payload
        """Wait for an event, or for a signal to this job.

        Until it comes, the job is released as by `sleep`. The event is recorded: later attempts,
        and other waits for the same event, get the same payload.

        Args:
            event: its name, 1 to 256 characters.
            timeout: a timedelta or seconds, from the first wait; None waits without limit.

        Returns:
            The event's payload.

        Raises:
            EventTimeout: it did not come in time. If it is not caught, the job is dead.
            StepInvalid: the name or the timeout is invalid. The job is then dead.
        """
        _check_name("event", event)
        late = EventTimeout("the event did not come in time", detail=event)
        return self._run(self._waited(event, _limit_of(timeout), late))

    def receive(self, name: str, timeout: timedelta | float | None = None) -> Any:  # noqa: ANN401 - the message
        """Wait for the next message to this job, see `jobq.Client.send_message`.

        Until it comes, the job is released as by `sleep`. Messages of a name are received in their
        order, each once; later attempts get the same ones.

        Args:
            name: the name of the messages, 1 to 200 characters.
            timeout: a timedelta or seconds, from the first wait; None waits without limit.

        Raises:
            EventTimeout: no message came in time. The next call waits for the same message again.
            StepInvalid: the name or the timeout is invalid. The job is then dead.
        """
        return self._run(self._receive(Mailbox(name), _limit_of(timeout)))

    def wait_any(self, *sources: Source, timeout: timedelta | float | None = None) -> Any:  # noqa: ANN401 - Arrived
        """Wait for the first of several events, called jobs and messages.

        Until one arrives, the job is released as by `sleep`. The first one is recorded; later
        attempts get the same. The job no longer waits for the others; a later wait can.

        Args:
            *sources: names of events, what `call` or `start` returned, or mailboxes, at most 100.
            timeout: a timedelta or seconds, from the first wait; None waits without limit.

        Returns:
            An `Arrived`, with the source and its value.

        Raises:
            EventTimeout: nothing came in time.
            ChildFailed: a called job ended first, and has not succeeded.
        """
        self._waits["any"] += 1
        return self._run(self._wait_any(f"any:{self._waits['any']}", sources, _limit_of(timeout)))

    def call(
        self,
        /,
        kind: str,
        payload: Json = None,
        *,
        name: str | None = None,
        cancel: bool = True,
        **options: Any,  # noqa: ANN401 - as `Client.enqueue` has them
    ) -> Any:  # noqa: ANN401 - its result, or awaited
        """Enqueue another job, wait until it has ended, and return its result.

        It is enqueued once, whatever happens to this job's attempts. Until it has ended, this job
        is released as by `sleep`. In a coroutine the result is awaited; pass it to `gather` or
        `wait_any` instead to wait for several.

        Args:
            kind: names the handler.
            payload: JSON, or anything that msgspec can encode; None is ``{}``.
            name: name of the call; ``call:KIND`` by default, numbered like names of steps.
            cancel: whether the called job is cancelled if this one is.
            options: queue, run_at, priority, max_attempts, timeout, metadata, concurrency_key,
                expires_at and cost, as for ``enqueue``.

        Raises:
            ChildFailed: it is dead or cancelled. If this is not caught, this job is dead, too.
            JobqError: as ``enqueue``.
        """
        call = ChildCall(
            self._document(kind, payload, name, cancel=cancel, **options), self._called
        )
        return call if self._is_awaited else finished(self._called(call))

    def start(
        self,
        /,
        kind: str,
        payload: Json = None,
        *,
        name: str | None = None,
        cancel: bool = True,
        **options: Any,  # noqa: ANN401 - as `Client.enqueue` has them
    ) -> Any:  # noqa: ANN401 - a Child, or awaited
        """Call a job as `call` does, but return a `Child` at once, for `gather` or `wait_any`."""
        return self._run(self._start(self._document(kind, payload, name, cancel=cancel, **options)))

    def gather(self, *calls: Any) -> Any:  # noqa: ANN401 - a list, or awaited
        """Wait until all of these called jobs have ended, and return their results in order.

        Args:
            *calls: what `start` returned or, in a coroutine, `call`; at most 1000.

        Raises:
            ChildFailed: the first one that has not succeeded, once all have ended.
        """
        return self._run(self._gather(calls))

    def stream(self, name: str) -> Stream:
        """Return a stream, to write partial output for those who follow this job.

        Readers see the chunks of each attempt as a generation of its own. Write to a stream in one
        step only: then its last generation is complete.

        Args:
            name: 1 to 256 characters.
        """
        _check_name("stream", name)
        return Stream(self.chunks, name)

    def approve(
        self,
        name: str,
        question: str,
        *,
        form: Mapping[str, Json] | None = None,
        timeout: timedelta | float | None = None,
    ) -> Any:  # noqa: ANN401 - an Answer, or awaited
        """Ask a person a question, and wait for the `Answer`.

            answer = await context.approve("refund", f"Refund {cents} cents?")
            if not answer.is_approved: ...

        Until somebody answers, the job is released as by `sleep`. `Client.list_waits` lists the
        open questions, and `Client.answer` answers one. The answer is recorded: later attempts
        get the same.

        Args:
            name: unique in the job, 1 to 249 characters.
            question: what the person reads, at most 4096 characters.
            form: a JSON Schema of the data that an approval must have; None for none.
            timeout: a timedelta or seconds, from the first call; None waits without limit.

        Raises:
            EventTimeout: nobody answered in time. If it is not caught, the job is dead.
            StepInvalid: an argument is invalid. The job is then dead.
        """
        _check_name("question", name)
        return self._run(self._approve(name, question, form, _limit_of(timeout)))

    def inputs(self) -> Any:  # noqa: ANN401 - a list of Input, or awaited
        """Return an `Input` for each job of ``enqueue(after=...)``, in the order of their ids."""
        return self._run(self._inputs())

    async def _called(self, call: ChildCall) -> Json:
        return (await self._gather([call]))[0]

    def _document(
        self, kind: str, payload: Json, name: str | None, **options: Json
    ) -> dict[str, Json]:
        """Return a call as `start_children` takes it, under a name of its own."""
        name = self._own_name(name or f"call:{kind}")
        job: dict[str, Json] = {**options, "name": name, "kind": kind, "payload": payload}
        job["metadata"] = with_trace(options.get("metadata"))
        return {member: value for member, value in job.items() if value is not None}

    async def _start(self, document: dict[str, Json]) -> Child:
        known = await self._recorded()
        child_id = known.get(document["name"])
        if child_id is None:
            given = (self._job_id, self._attempt, _text_of([document], CALL))
            [(child_id,)] = await self._call(START_CHILDREN, given)
        return Child(UUID(str(child_id)), document["kind"], document["name"])

    async def _gather(self, calls: Sequence[Any]) -> list[Json]:
        documents = []
        for call in calls:
            given = await call if inspect.iscoroutine(call) else call
            if isinstance(given, ChildCall):
                documents.append(given.document)
            elif isinstance(given, Child):
                documents.append({"name": given.name, "kind": given.kind})
            else:
                raise StepInvalid(
                    "gather takes the results of context.call or context.start",
                    detail=f"{given!r:.80}",
                )
        if not documents:
            return []
        known = await self._recorded()
        names = [f"event:job_ended:{known.get(document['name'])}" for document in documents]
        if all(name in known for name in names):
            results = [known[name]["payload"] for name in names]
        else:
            parameters = (self._job_id, self._attempt, _text_of(documents, CALL))
            [(outcome, text)] = await self._call(CALL_CHILDREN, parameters)
            if outcome == "waiting":
                raise Suspended
            results = _value(text)
        return [value_of_end(e, d["kind"]) for e, d in zip(results, documents, strict=True)]

    async def _receive(self, mailbox: Mailbox, limit: timedelta | None) -> Json:
        self._waits[f"receive {mailbox.name}"] += 1
        name = f"receive:{mailbox.name}:{self._waits[f'receive {mailbox.name}']}"
        return (await self._wait_any(name, [mailbox], limit)).value

    async def _wait_any(
        self, name: str, sources: Sequence[Any], limit: timedelta | None
    ) -> Arrived:
        events: dict[str, tuple[Source, Source]] = {}
        for given in sources:
            source = await given if inspect.iscoroutine(given) else given
            waited = await self._start(source.document) if isinstance(source, ChildCall) else source
            events[self._event_of(waited)] = source, waited
        late = EventTimeout("nothing came in time", detail=", ".join(events))
        event, payload = await self._end_of(name, limit, late, WAIT_ANY, (name, list(events)))
        event = event or next(iter(events))
        if event not in events:
            raise StepInvalid("the recorded wait had other sources", detail=event)
        source, waited = events[event]
        if isinstance(waited, Child):
            return Arrived(source, value_of_end(payload, waited.kind))
        if isinstance(waited, Mailbox):
            self._messages[waited.name] += 1
        return Arrived(source, payload)

    def _event_of(self, source: object) -> str:
        """Return the event for which the database waits."""
        match source:
            case Child():
                return f"job_ended:{source.job_id}"
            case Mailbox():
                _check_name("mailbox", source.name)
                return f"message:{self._job_id}:{source.name}:{self._messages[source.name] + 1:09}"
            case str():
                _check_name("event", source)
                return source
        raise StepInvalid(
            "a handler can wait for events, called jobs and mailboxes", detail=f"{source!r:.80}"
        )

    def _run(self, step: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - its result
        return step if self._is_awaited else finished(step)

    def _own_name(self, name: str) -> str:
        """Return a name that is unique in this attempt, by adding a number."""
        _check_name("step", name)
        if name not in self._names:
            self._names.add(name)
            return name
        count = max(self._counts[name], 1) + 1
        own = f"{name}#{count}"
        while own in self._names:
            count += 1
            own = f"{name}#{count}"
        _check_name("step", own)
        self._counts[name] = count
        self._names.add(own)
        return own

    async def _inputs(self) -> list[Input]:
        rows = await self._call(LIST_INPUTS, (self._job_id,))
        return [
            Input(UUID(str(parent)), name, kind, state, _value(result), rule)
            for parent, name, kind, state, result, rule in rows
        ]

    async def _step(
        self, name: str, function: Callable[[], Any], failure: str, retries: int, delay: timedelta
    ) -> Json:
        known = await self._recorded()
        if name in known:
            return known[name]
        failed = 0
        while f"{failure}!{failed + 1}" in known and failed < retries:
            failed += 1
        while True:
            if failed:
                await self._wait_after(name, failed, delay)
            try:
                value = await self._result_of(function())
            except (*OUTCOMES, JobqError):
                raise
            except Exception as error:
                if failed >= retries:
                    raise
                failed += 1
                own, text = f"{failure}!{failed}", encode({"error": error_text(error)})
            else:
                break
            await self._call(SAVE_STEP, (self._job_id, self._attempt, own, text))
        text = _text_of(value, "what a step returns must be JSON", f"{name}: ")
        try:
            rows = await self._call(SAVE_STEP, (self._job_id, self._attempt, name, text))
        except (InvalidArgument, PayloadInvalid, PayloadTooLarge) as error:
            raise StepInvalid(
                "what a step returned cannot be recorded", detail=f"{name}: {error}"
            ) from error
        return _value(rows[0][0])

    async def _wait_after(self, name: str, failed: int, delay: timedelta) -> None:
        """Wait before a step that failed so often is retried."""
        key = hashlib.sha256(name.encode()).hexdigest()[:32]
        pause = min(delay * 2 ** min(failed - 1, 20), LONGEST_STEP_DELAY)
        await self._waited(f"sleep:{self._job_id}:{key}:{failed}", pause)

    async def _approve(
        self,
        name: str,
        question: str,
        form: Mapping[str, Json] | None,
        limit: timedelta | None,
    ) -> Answer:
        late = EventTimeout("nobody answered in time", detail=name)
        try:
            given = (name, question, None if form is None else encode(form))
            _, answer = await self._end_of(f"answer:{name}", limit, late, ASK, given)
        except (InvalidArgument, PayloadInvalid) as error:
            raise StepInvalid("a question is invalid", detail=f"{name}: {error}") from error
        return Answer(answer["is_approved"], answer["data"], answer["reason"], answer["by"])

    async def _waited(
        self, event: str, limit: timedelta | None, late: EventTimeout | None = None
    ) -> Json:
        """Wait for an event and return its payload; after a timeout raise ``late``, if given."""
        return (await self._end_of(event, limit, late, WAIT_FOR, (event,)))[1]

    async def _end_of(
        self,
        wait: str,
        limit: timedelta | None,
        late: EventTimeout | None,
        statement: str,
        given: tuple[Any, ...],
    ) -> tuple[str | None, Json]:
        """Wait by a statement, unless the end of the wait is recorded; return event and payload."""
        ended = (await self._recorded()).get(f"event:{wait}")
        if ended is None:
            parameters = (self._job_id, self._attempt, *given, limit)
            [(*events, outcome, text)] = await self._call(statement, parameters)
            ended = {"outcome": outcome, "payload": _value(text), "event": next(iter(events), None)}
        if ended["outcome"] == "waiting":
            raise Suspended
        if ended["outcome"] == "timed_out" and late is not None:
            raise late
        return ended.get("event"), ended["payload"]

    async def _recorded(self) -> Mapping[str, Json]:
        if self._known is None:
            rows = await self._call(LIST_STEPS, ([self._job_id], [self._attempt]))
            self._known = {name: _value(value) for name, value in rows if name is not None}
        return self._known

    async def _call(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        # What was written is stored before its step is saved, and before the job is released.
        if self.chunks.is_pending:
            await awaited(self.chunks.flush())
        rows: list[Any] = await awaited(self.query(statement, parameters))
        return rows

    async def _result_of(self, returned: Any) -> Any:  # noqa: ANN401 - of a step's function
        if inspect.iscoroutine(returned) and not self._is_awaited:
            returned.close()
            raise TypeError("the steps of a plain handler must be plain functions")
        return await awaited(returned) if self._is_awaited else returned


def in_transaction(
    connection: Connection[Any] | AsyncConnection[Any],
    before: Callable[[str], Awaitable[None]] | None = None,
) -> Call:
    """Return a function that records steps in the transaction of a connection.

    Each statement locks the job until the end of the transaction. The function calls ``before``
    with it first.
    """

    async def call(statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        if before is not None:
            await before(statement)
        with translate():
            cursor: Any = connection.cursor()
            cursor.adapters.register_loader("jsonb", TextLoader)
            await awaited(cursor.execute(statement, parameters))
            rows: list[Any] = await awaited(cursor.fetchall())
            return rows

    if isinstance(connection, AsyncConnection):
        return call
    return lambda *given: finished(call(*given))


def _value(text: str | None) -> Json:
    value: Json = None if text is None else msgspec.json.decode(text)
    return value


def _timed(name: str, call: Callable[[], Any], timeout: timedelta) -> Callable[[], Any]:
    """Return a function that calls a coroutine function with a timeout."""

    async def called() -> Any:  # noqa: ANN401 - what it returns
        answer = call()
        if not inspect.isawaitable(answer):
            raise StepInvalid("a step with a timeout must be a coroutine function", detail=name)
        async with asyncio.timeout(timeout.total_seconds()):
            return await answer

    return called


def _limit_of(timeout: timedelta | float | None) -> timedelta | None:
    limit = None if timeout is None else span_of("timeout", timeout, StepInvalid)
    if limit is not None and not timedelta(0) <= limit <= LONGEST_WAIT:
        raise StepInvalid("timeout must be between 0 and 36500 days", detail=str(timeout))
    return limit


def _check_name(what: str, name: object) -> None:
    """Check a name as the database does."""
    longest = {"question": MAX_QUESTION_NAME, "mailbox": MAX_MAILBOX}.get(what, MAX_NAME)
    is_text = isinstance(name, str) and 1 <= len(name) <= longest and "\0" not in name
    if not is_text or (what == "step" and str(name).startswith("event:")):
        raise StepInvalid(
            f"the name of {'an' if what == 'event' else 'a'} {what} must be text"
            f" of 1 to {longest} characters"
            + (", and not begin with event:" if what == "step" else ""),
            detail=f"{str(name)[:MAX_NAME]!r}",
        )


def _text_of(value: object, rule: str, where: str = "") -> str:
    """Return JSON text; raise StepInvalid with this text if a value has none."""
    try:
        return encode(value)
    except InvalidArgument as error:
        raise StepInvalid(rule, detail=f"{where}{error}") from error
