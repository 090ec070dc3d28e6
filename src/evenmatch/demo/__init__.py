"""The demo: four games with simulated players, a past season of each, and a crowd that goes on playing."""
