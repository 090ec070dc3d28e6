"""Read-only queries: standings, matches, players, explanations, activity."""
