"""Operations on the schema: deploy and check it."""
