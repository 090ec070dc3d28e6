"""Pydantic models of request and response bodies, used by the API, its OpenAPI document and the client."""
