curl -X POST {{ server_url }}/api/v1/tasks \
  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
  -d '{"task_id": "hello", "execution_handler": "builtin:echo"}'
