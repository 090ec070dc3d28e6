"""Batch work on many machines: a Ray cluster runs one task per ladder, parameter set or queue."""

from evenmatch.cluster.connection import Cluster, connect

__all__ = ["Cluster", "connect"]
