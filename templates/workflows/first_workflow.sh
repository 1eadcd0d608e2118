curl -X POST {{ server_url }}/api/v1/tasks \
  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
  -d '{"task_id": "say", "execution_handler": "builtin:echo"}'

curl -X POST {{ server_url }}/api/v1/workflows \
  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
  -d '{"name": "First workflow", "schedule": {"type": "IMMEDIATE"},
       "steps": [
         {"key": "extract", "task_id": "say", "parameters": {"regions": ["eu", "us"]}},
         {"key": "load", "task_id": "say", "depends_on": ["extract"],
          "map": {"$from": "extract.regions"}, "parameters": {"region": {"$from": "item"}}},
         {"key": "report", "task_id": "say", "depends_on": ["load"]}]}'
