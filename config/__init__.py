"""The task file: models, loading, friendly errors."""

from config.loading import json_schema, load_task
from config.models import Task
from config.problems import Problem, TaskFileError

__all__ = ["Problem", "Task", "TaskFileError", "json_schema", "load_task"]
