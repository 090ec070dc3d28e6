"""The web site for players, designers and operators: pages over the same use cases as the API."""
