"""Several databases as one queue."""
