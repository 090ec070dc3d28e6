"""What goes over the wire, as strict pydantic models: the API documents them, and the client reads by them."""
