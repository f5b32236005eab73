"""A shop with FastAPI, SQLAlchemy and jobq: a complete program.

    pip install 'jobq[contrib]' uvicorn
    export DATABASE_URL=postgresql://localhost/shop
    jobq deploy
    uvicorn shop:app              # the web application
    jobq worker shop:registry     # as many workers as you need

A sign-up inserts a customer and enqueues a mail in one transaction. The handler writes what it has
sent into a table whose key is the job, so that a second run sends nothing twice.
"""

from __future__ import annotations

import os
import uuid  # noqa: TC003 - FastAPI and SQLAlchemy read annotations
from collections.abc import AsyncIterator  # noqa: TC003
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, status
from pydantic import BaseModel
from sqlalchemy import ForeignKey, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from jobq import JobContext, Permanent, Registry
from jobq.errors import JobNotFound
from jobq_contrib.sqlalchemy import async_client_of

engine = create_async_engine(
    os.environ["DATABASE_URL"].replace("postgresql:", "postgresql+psycopg:", 1)
)
Session = async_sessionmaker(engine, expire_on_commit=False)
registry = Registry()


# ---- tables


class Base(DeclarativeBase):
    """The tables of the application; in a larger one, Alembic creates them."""


class Customer(Base):
    """Somebody who has signed up."""

    __tablename__ = "customer"

    customer_id: Mapped[int] = mapped_column(primary_key=True)
    email: Mapped[str] = mapped_column(unique=True)


class Mail(Base):
    """A mail that was sent; the job is its key."""

    __tablename__ = "mail"

    job_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customer.customer_id"))
    subject: Mapped[str]


# ---- jobs


class Welcome(BaseModel):
    """The payload; the database refuses another one."""

    customer_id: int
    subject: str = "Welcome!"


@registry.handler("welcome", max_attempts=5, timeout=30)
async def welcome(payload: Welcome, context: JobContext) -> dict[str, str]:
    """Send a customer a mail, once."""
    async with Session.begin() as session:
        customer = await session.get(Customer, payload.customer_id)
        if customer is None:
            raise Permanent("CUSTOMER_GONE", f"there is no customer {payload.customer_id}")
        if await session.get(Mail, context.job_id) is None:
            session.add(
                Mail(
                    job_id=context.job_id,
                    customer_id=customer.customer_id,
                    subject=payload.subject,
                )
            )
        return {"sent_to": customer.email}


# ---- the web application


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Create the tables, and close the connections at the end."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    yield
    await engine.dispose()


async def open_session() -> AsyncIterator[AsyncSession]:
    """Yield a session for a request; its transaction commits when the request has succeeded."""
    async with Session.begin() as session:
        yield session


app = FastAPI(lifespan=lifespan)
InTransaction = Annotated[AsyncSession, Depends(open_session, scope="function")]


class SignUp(BaseModel):
    """The body of a sign-up."""

    email: str


@app.post("/customers", status_code=status.HTTP_201_CREATED)
async def sign_up(body: SignUp, session: InTransaction) -> dict[str, Any]:
    """Insert a customer and enqueue the mail: both, or neither."""
    customer = Customer(email=body.email)
    session.add(customer)
    try:
        await session.flush()
    except IntegrityError as error:
        raise HTTPException(status.HTTP_409_CONFLICT, "this address is taken") from error
    client = await async_client_of(session)
    job = await client.enqueue("welcome", Welcome(customer_id=customer.customer_id))
    return {"customer_id": customer.customer_id, "job_id": job.job_id}


@app.get("/jobs/{job_id}")
async def show_job(job_id: uuid.UUID, session: InTransaction) -> dict[str, Any]:
    """Return what has become of a job."""
    client = await async_client_of(session)
    try:
        job = await client.get(job_id)
    except JobNotFound as error:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "there is no such job") from error
    return {"state": job.state, "result": job.result, "error": job.last_error}


@app.get("/customers/{customer_id}/mails")
async def list_mails(customer_id: int, session: InTransaction) -> list[str]:
    """Return the subjects of the mails that a customer was sent."""
    found = await session.scalars(select(Mail.subject).where(Mail.customer_id == customer_id))
    return list(found)
