"""The description of a handler: how to call it, and what it declares about its kind."""

from __future__ import annotations

import builtins
import inspect
import math
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from jobq.registry.context import JobContext
from jobq.registry.schema import payload_schema
from jobq.registry.settlement import RetryRules

Mode = Literal["coroutine", "thread", "process"]

BATCH_WAIT: Final = 0.01  # seconds
_EXTRAS: Final = ("context", "connection")
_BATCH_EXTRAS: Final = ("contexts",)


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that runs the jobs of a kind; see `HandlerOptions` too."""

    kind: str
    function: Callable[..., Any]  # takes the payload, then ``extras``
    mode: Mode
    is_transactional: bool
    extras: tuple[str, ...]
    parse: Callable[[Any], Any]  # converts decoded JSON to its payload
    takes_payload: bool
    definition: Mapping[str, Any]  # arguments of put_kind; empty without any
    on_dead: Callable[[JobContext, str, str], Any] | None
    interrupt_on_cancel: bool
    batch: int  # 0 if it takes a single job
    batch_wait: float  # seconds
    max_in_process: int | None
    rules: RetryRules
    pin_release: bool = False

    @property
    def is_awaited(self) -> bool:
        """Whether it is a coroutine function."""
        return self.mode == "coroutine"

    def read(self, text: str) -> object:
        """Decode its payload from JSON text; None if it takes none.

        Raises:
            ValueError, RecursionError: the payload does not match its type.
        """
        return self.parse(msgspec.json.decode(text)) if self.takes_payload else None

    def arguments(self, payload: object, context: object, connection: object) -> tuple[Any, ...]:
        """Return the positional arguments of a call."""
        given = (payload,) if self.takes_payload else ()
        if not self.extras:
            return given
        return (*given, *(context if e == "context" else connection for e in self.extras))

    def batch_arguments(self, payloads: list[object], contexts: list[Any]) -> tuple[Any, ...]:
        """Return the positional arguments of a call for several jobs."""
        return (*((payloads,) if self.takes_payload else ()), *((contexts,) if self.extras else ()))


def describe(
    kind: str,
    function: Callable[..., Any],
    options: Mapping[str, Any] | None = None,
    definition: Mapping[str, Any] | None = None,
    *,
    batch: int = 0,
) -> Handler:
    """Inspect a handler's signature and return its description.

    Raises:
        TypeError: the function cannot be a handler with these options.
    """
    if not callable(function):
        raise TypeError(f"handler of {kind}: {function!r} is not callable")
    given = options or {}
    transactional, process = given.get("transactional", False), given.get("process", False)
    interrupt_on_cancel = given.get("interrupt_on_cancel", False)
    wait = given.get("batch_wait", BATCH_WAIT)
    batch_wait = wait / timedelta(seconds=1) if isinstance(wait, timedelta) else wait
    on_dead = given.get("on_dead") or getattr(function, "on_dead", None)
    if on_dead is not None and not callable(on_dead):
        raise TypeError(
            f"handler of {kind}: on_dead must be a function; "
            "hold_on_dead=True holds the key of a dead job"
        )
    is_function = inspect.isroutine(function) or isinstance(function, partial)
    called = function if is_function else function.__call__  # type: ignore[operator]
    is_coroutine = inspect.iscoroutinefunction(called)
    takes_payload, extras, payload_type = _parameters(
        kind, called, _BATCH_EXTRAS if batch else _EXTRAS
    )
    mode: Mode = "process" if process else "coroutine" if is_coroutine else "thread"
    if interrupt_on_cancel and mode == "thread":
        raise TypeError(f"handler of {kind}: a thread cannot be interrupted")
    if type(batch) is not int or batch < 0:
        raise TypeError(f"handler of {kind}: batch must be a number of jobs")
    if not 0 <= batch_wait < math.inf:
        raise TypeError(f"handler of {kind}: batch_wait must be a number of seconds")
    if batch:
        payload_type = _item_type(kind, payload_type, is_plain=not (process or transactional))
    if process and (is_coroutine or "connection" in extras or transactional):
        raise TypeError(
            f"handler of {kind}: a handler in a process must be a plain function "
            "with the payload and at most 'context' as parameters"
        )
    if transactional != ("connection" in extras):
        raise TypeError(f"handler of {kind}: transactional=True and 'connection' go together")
    schema = payload_schema(payload_type) if takes_payload else None
    declared = {name: v for name, v in (definition or {}).items() if v is not None}
    if schema is not None:
        declared["payload_schema"] = schema
    return Handler(
        kind=kind,
        function=function,
        mode=mode,
        is_transactional=transactional,
        extras=extras,
        parse=_parser(payload_type),
        takes_payload=takes_payload,
        definition=declared,
        on_dead=on_dead,
        interrupt_on_cancel=interrupt_on_cancel,
        batch=batch,
        batch_wait=batch_wait,
        max_in_process=given.get("max_in_process"),
        rules=RetryRules(
            _classes(given.get("retry_on")),
            _classes(given.get("discard_on")) or (),
            given.get("retry_delay"),
        ),
        pin_release=bool(given.get("pin_release")) and not batch,
    )


def _classes(given: object) -> tuple[type[BaseException], ...] | None:
    """Return one or several exception classes as a tuple; None for None."""
    if given is None:
        return None
    classes = tuple(given) if isinstance(given, list | tuple | set) else (given,)
    if not all(isinstance(c, type) and issubclass(c, BaseException) for c in classes):
        raise TypeError("retry_on and discard_on are classes of exceptions")
    return classes


def _item_type(kind: str, payloads_type: Any, *, is_plain: bool) -> Any:  # noqa: ANN401
    """Return the type of the payloads in a batch."""
    if not is_plain:
        raise TypeError(f"handler of {kind}: a batch cannot be transactional or in a process")
    if payloads_type in (Any, list):
        return Any
    if get_origin(payloads_type) is not list:
        raise TypeError(f"handler of {kind}: a batch handler must take a list of payloads")
    (item_type,) = get_args(payloads_type)
    return item_type


def _parameters(
    kind: str, function: Callable[..., Any], known: tuple[str, ...]
) -> tuple[bool, tuple[str, ...], Any]:
    """Return whether a function takes a payload, its extras, and the payload's type.

    A function with ``*args`` and no named parameters takes the payload.
    """
    try:
        named = inspect.signature(function).parameters.values()
    except ValueError as error:
        raise TypeError(f"handler of {kind}: {error}") from error
    positional = [p for p in named if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    parameters = positional or [p for p in named if p.kind is p.VAR_POSITIONAL]
    for p in named:
        is_lost = p.kind is p.VAR_KEYWORD and not parameters
        if is_lost or (p.kind is p.KEYWORD_ONLY and p.default is p.empty):
            raise TypeError(f"handler of {kind}: {p.name!r} must not be keyword-only")
    takes_payload = bool(parameters) and parameters[0].name not in known
    rest = parameters[1:] if takes_payload else parameters
    extras = tuple(p.name for p in rest if p.default is p.empty or p.name in known)
    unknown = [name for name in extras if name not in known]
    if unknown:
        names = " and ".join(repr(name) for name in known)
        raise TypeError(
            f"handler of {kind}: allowed after the payload: {names}, not {', '.join(unknown)}"
        )
    payload_type = _annotation(function, parameters[0].annotation) if takes_payload else Any
    if payload_type is JobContext:
        raise TypeError(f"handler of {kind}: the context parameter must be named 'context'")
    return takes_payload, extras, payload_type


def _annotation(function: Callable[..., Any], given: Any) -> Any:  # noqa: ANN401
    """Return the type of one annotation, even if others cannot be resolved."""
    if given is inspect.Parameter.empty:
        return Any
    if not isinstance(given, str):
        return given
    while isinstance(function, partial):
        function = function.func
    plain = inspect.unwrap(getattr(function, "__func__", function))
    names = {**vars(builtins), **vars(typing), **vars(sys.modules[plain.__module__])}
    names.update(getattr(plain, "__globals__", {}))
    closure = getattr(plain, "__closure__", None) or ()
    names.update(zip(plain.__code__.co_freevars, (c.cell_contents for c in closure), strict=True))
    try:
        return eval(given, names)  # noqa: S307 - an annotation of the handler's own module
    except NameError as error:
        raise TypeError(
            f"the type {given!r} must be importable in the module of the handler"
        ) from error


def _parser(payload_type: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - any type
    """Return a function that converts decoded JSON to a type, or raises ValueError."""
    is_plain_dict = payload_type is dict or payload_type == dict[str, Any]
    if payload_type in (Any, object, None) or is_plain_dict:
        return lambda payload: payload
    validate = getattr(payload_type, "model_validate", None)
    if validate is not None:
        return validate  # type: ignore[no-any-return]
    return lambda payload: msgspec.convert(payload, payload_type)


def result_parser(of: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a function that converts a job's result to a type, or to a handler's return type."""
    if inspect.isclass(of) or get_origin(of) is not None:
        return _parser(of)
    return _parser(_annotation(of, inspect.signature(of).return_annotation))
