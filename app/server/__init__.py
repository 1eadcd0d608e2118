"""The composition root: the only place that builds objects, and orders their start and stop.

One file a process, so that each loads only what it needs.
"""
