"""A Ray cluster, an object store and a database server for the tests of a file."""

from object_store import object_store  # noqa: F401
from postgres import postgres  # noqa: F401
from ray_cluster import ray_cluster  # noqa: F401
