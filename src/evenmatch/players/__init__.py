"""Players: identities, profiles, matches and explanations."""
