"""Long work on ladders: tasks that a worker process does for the service, one ladder at a time."""
