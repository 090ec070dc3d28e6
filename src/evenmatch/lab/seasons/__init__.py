"""Simulated seasons: players with a hidden true skill, who queue, play and are rated for weeks."""
