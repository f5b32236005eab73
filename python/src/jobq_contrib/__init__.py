"""jobq in other frameworks: sqlalchemy, django, starlette (and FastAPI), flask, pytest.

Each module needs its framework and nothing else; none is imported unless it is asked for.
"""
