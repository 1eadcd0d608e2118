"""Workflows: what their runs are made of, and how runs go on."""
