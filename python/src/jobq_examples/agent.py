"""An agent that plans a trip: it streams what it says, calls tools, asks a person, and listens.

A script stands in for the language model, so that every run says the same. The transcript is the
same, too, however often workers are killed meanwhile. Run it with
``jobq worker jobq_examples.agent:registry``.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from jobq.registry import JobContext, Permanent, Registry

registry = Registry()

TURNS: Final = 10


@dataclass(frozen=True, slots=True)
class Task:
    """What the agent is asked to do.

    Args:
        request: in words.
        pause: seconds between two words of the model.
    """

    request: str
    pause: float = 0.01


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model wants next.

    Args:
        text: what it says.
        tools: the kinds of jobs to call, with their payloads.
        question: what to ask a person.
        is_open: whether it waits for a message of the user.
    """

    text: str
    tools: list[tuple[str, Any]] = field(default_factory=list)
    question: str | None = None
    is_open: bool = False


def model(transcript: list[dict[str, Any]]) -> Reply:
    """Return the next reply of the scripted model."""
    said = [line["content"] for line in transcript if line["role"] != "assistant"]
    match said:
        case [request]:
            tools = [("look_up_weather", request), ("look_up_trains", request)]
            return Reply(f"I look up the weather and the trains for {request}.", tools)
        case [_, weather, trains]:
            text = f"There will be {weather}, and the train costs {trains} euro."
            return Reply(text, question=f"Buy the ticket for {trains} euro?")
        case [*_, {"approved": False}]:
            return Reply("Then I do not buy it. Good bye.")
        case [*_, {"approved": True}]:
            return Reply("I have bought the ticket. Do you want to change anything?", is_open=True)
        case [*_, correction]:
            return Reply(f"I have changed this: {correction}. Good bye.")
    raise Permanent("NO_SCRIPT", f"the script ends after {len(said)} messages")


@registry.handler("agent")
async def agent(task: Task, context: JobContext) -> list[dict[str, Any]]:
    """Talk with the model until it has finished, and return the transcript."""
    transcript: list[dict[str, Any]] = [{"role": "user", "content": task.request}]
    for turn in range(1, TURNS + 1):
        reply = await context.step("model", speak, transcript, turn, task.pause, context)
        transcript.append({"role": "assistant", "content": reply["text"]})
        if reply["tools"]:
            calls = [context.call(kind, payload) for kind, payload in reply["tools"]]
            results = await context.gather(*calls)
            transcript += [{"role": "tool", "content": result} for result in results]
        elif reply["question"]:
            answer = await context.approve("purchase", reply["question"])
            transcript.append({"role": "person", "content": {"approved": answer.is_approved}})
        elif reply["is_open"]:
            message = await context.receive("chat")
            transcript.append({"role": "user", "content": message})
        else:
            return transcript
    raise Permanent("TOO_LONG", f"the model has not finished after {TURNS} turns")


async def speak(
    transcript: list[dict[str, Any]], turn: int, pause: float, context: JobContext
) -> dict[str, Any]:
    """Call the model, and stream its words while it speaks; each turn is a stream of its own."""
    reply = model(transcript)
    stream = context.stream(f"turn {turn}")
    for word in reply.text.split():
        await asyncio.sleep(pause)
        stream.write(word)
    return asdict(reply)


@registry.handler("look_up_weather")
def look_up_weather(place: str) -> str:
    """Return the weather of a place; a tool."""
    return "rain" if len(place) % 2 else "sun"


@registry.handler("look_up_trains")
def look_up_trains(place: str) -> int:
    """Return the price of a ticket to a place; a tool."""
    return 10 * len(place)
