"""What tests share: tasks run in this process or in one of their own, and comparing tables."""
