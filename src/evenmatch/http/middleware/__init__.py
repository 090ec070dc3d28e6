"""ASGI middleware, which handles each request before it is routed."""
