"""Background jobs: tasks on a ladder that outlive a request."""
