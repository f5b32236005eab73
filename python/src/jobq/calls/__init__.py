"""Calls of the functions of the database, one module for each noun."""
