"""A method of a client, made of a function that returns a call.

It runs the call by the client's ``run``, which is a coroutine in `AsyncClient`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, get_args, overload

from jobq.calls.call import Call
from jobq.database import awaited, finished

Enqueueing: TypeAlias = tuple[list[dict[str, Any]], Callable[[], Call[Any]]]

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound="Callable[..., Any]")


class Waiting:
    """A synchronous client."""


class Awaited:
    """An asynchronous client."""


class Method(Generic[P, T]):
    """A method with the name, documentation and signature of a function that returns its call.

    If it enqueues, ``jobs_of`` returns its jobs as dicts, and a function that returns the call
    after hooks have changed them.
    """

    def __init__(
        self, make: Callable[P, Call[T]], jobs_of: Callable[..., Enqueueing] | None = None
    ) -> None:
        async def called(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401
            hooks = self.hooks
            if jobs_of is None or hooks is None or not hooks.is_enqueueing:
                return await awaited(self.run(make(*args, **kwargs)))
            made, call = jobs_of(*args, **kwargs)
            for job in made:
                for hook in hooks.before_enqueue:
                    hook(job)
            answer = await awaited(self.run(call()))
            answers = answer if isinstance(answer, list) else [answer]
            for job, enqueued in zip(made, answers, strict=True):
                for hook in hooks.after_enqueue:
                    hook(job, enqueued)
            return answer

        def waiting(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:  # noqa: ANN401
            return finished(called(self, *args, **kwargs))

        self._waiting, self._awaited = dressed(waiting, make), dressed(called, make)

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Any]: ...
    @overload
    def __get__(self, client: Waiting, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaited, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: object, owner: type) -> Any:
        """Return the method of a client, or the function of its class."""
        function = self._awaited if issubclass(owner, Awaited) else self._waiting
        return function if client is None else MethodType(function, client)


def dressed(function: F, make: Callable[..., Call[Any]]) -> F:
    """Set the name, the documentation and the signature that help() and the site show."""
    update_wrapper(function, make)
    signature = inspect.signature(make, eval_str=True)
    (answer,) = get_args(signature.return_annotation)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [own, *signature.parameters.values()]
    shown = signature.replace(parameters=parameters, return_annotation=answer)
    vars(function)["__signature__"] = shown
    function.__annotations__ = {**make.__annotations__, "return": answer}
    return function
