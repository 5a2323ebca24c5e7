"""The task file: models, loading, friendly errors."""

from config.loading import load_task
from config.models import Task
from config.problems import Problem, TaskFileError

__all__ = ["Problem", "Task", "TaskFileError", "load_task"]
