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

# A host of docs/failover: PostgreSQL, Patroni and etcd.
FROM postgres:18 AS patroni
RUN apt-get update \
    && apt-get install --yes --no-install-recommends etcd-server python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/patroni \
    && /opt/patroni/bin/pip install --no-cache-dir 'patroni[etcd3,psycopg3]==4.1.5' \
    && install -d -o postgres -g postgres -m 700 /var/lib/etcd /var/lib/patroni
COPY docs/failover/patroni.yml /etc/patroni.yml
USER postgres
CMD ["/opt/patroni/bin/patroni", "/etc/patroni.yml"]

FROM base AS jobq
