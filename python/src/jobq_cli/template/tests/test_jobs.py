"""The handlers do what they say; nothing of it stays in the database."""

from myapp.jobs import registry


def test_ada_is_greeted(jobq_client, run_due):
    jobq_client.enqueue("greet", {"name": "Ada"})
    [ran] = run_due(registry)
    assert (ran.state, ran.result) == ("succeeded", {"said": "Hello, Ada"})


def test_nobody_is_not(jobq_client, run_due):
    jobq_client.enqueue("greet", {"name": ""})
    [ran] = run_due(registry)
    assert ran.state == "dead"
