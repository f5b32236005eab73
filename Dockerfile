FROM python:3.13-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        sqitch libdbd-pg-perl postgresql-client \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN pip install --no-cache-dir '/src/python[http,examples]' \
    && rm -rf /src \
    && useradd --create-home jobq
USER jobq
WORKDIR /home/jobq
CMD ["jobq", "--help"]
