"""The handlers: what this application does in the background."""

from __future__ import annotations

from dataclasses import dataclass

from jobq import JobContext, Permanent, Registry, Retry

registry = Registry()


@dataclass(frozen=True)
class Greeting:
    """Whom to greet; the database refuses a payload without a name."""

    name: str


@registry.schedule("good morning", "0 8 * * *", payload={"name": "everybody"})
@registry.handler("greet", max_attempts=5, timeout=30)
async def greet(payload: Greeting, context: JobContext) -> dict[str, str]:
    """Greet somebody: an example of a result, a retry and a death."""
    if payload.name == "":
        raise Permanent("NO_NAME", "nobody is called nothing")
    if payload.name == "Echo" and context.attempt == 1:
        raise Retry("say that again", in_=0.1)
    return {"said": f"Hello, {payload.name}"}
