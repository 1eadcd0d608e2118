"""Workflows: steps joined by dependencies into a graph, and what follows from what has become of them."""
