"""The task file: models, loading, friendly errors."""
