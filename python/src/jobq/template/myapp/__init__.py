"""An application with jobs."""
