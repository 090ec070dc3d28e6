"""The JSON API over the service: handlers parse, call, wrap."""
