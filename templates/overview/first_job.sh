curl -X POST {{ server_url }}/api/v1/jobs \
  -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
  -d '{"task_id": "hello", "name": "First job",
       "schedule": {"type": "INTERVAL", "every": 10},
       "parameters": {"greeting": "hello"}}'
