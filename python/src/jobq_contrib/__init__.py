"""jobq in frameworks: SQLAlchemy, Django and its tasks, Celery, Starlette (FastAPI), Flask, pytest.

Each module requires only its framework, and is imported only by you.
"""
