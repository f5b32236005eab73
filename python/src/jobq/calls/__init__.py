"""Calls of the functions of the database; `generated` has those that are only one function."""
