"""The programs beside Python that a task needs: Java."""

from __future__ import annotations

from pathlib import Path

from replicator.pipeline.spark import java as java_home


class MissingProgramError(Exception):
    """A program that the task needs is not installed, or not found; says what to do."""


def check_java() -> None:
    """See whether Spark finds its Java. Raises MissingProgramError."""
    try:
        home = java_home.find_java_home()
    except java_home.JavaMissingError as error:
        raise MissingProgramError(str(error)) from error
    if not Path(home, "bin", "java").is_file():
        raise MissingProgramError(
            f"JAVA_HOME is {home}, where no bin/java is: set it to the folder of Java 17, "
            "21 or 25, or unset it to have an installed one found"
        )
