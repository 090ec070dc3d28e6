"""A Ray cluster for the tests of a file."""

from ray_cluster import ray_cluster  # noqa: F401
