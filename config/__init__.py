"""The task file: its models, loading it, and helpful error messages."""

from config.loading import load_task
from config.models import Task
from config.problems import Problem, TaskFileError

__all__ = ["Problem", "Task", "TaskFileError", "load_task"]
