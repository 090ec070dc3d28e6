"""The web site for players, designers and operators: pages over the same services as the HTTP API."""
