"""What operators do with the schema: deploy it, check it."""
