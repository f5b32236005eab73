"""jobq in frameworks: SQLAlchemy, Django, Starlette (and FastAPI), Flask, pytest.

Each module requires only its framework, and is imported only by you.
"""
