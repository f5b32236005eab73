FROM python:3.13-slim AS base
COPY . /src
RUN pip install --no-cache-dir '/src/python[http,examples]' \
    && rm -rf /src \
    && useradd --create-home jobq
USER jobq
WORKDIR /home/jobq
CMD ["jobq", "--help"]

# Sqitch upgrades a database that is there; workers and servers do without.
FROM base AS migrate
USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        sqitch libdbd-pg-perl postgresql-client \
    && rm -rf /var/lib/apt/lists/*
USER jobq

FROM base AS jobq
