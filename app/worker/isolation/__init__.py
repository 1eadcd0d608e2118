"""Attempts in processes of their own, which can be killed: functions with `isolation="process"`, and commands.

`launcher` and `server_line` are the worker's side. `fork_server` is a process beside each worker that imports the
task modules once and forks for each attempt; `child`, `function` and `command` run in what it forks. `messages` is
what both sides say.
"""
