"""A client of the REST API."""
