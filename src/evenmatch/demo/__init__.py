"""A small world for people who want to look: four games, their players, a season of each, and a crowd that plays on."""
