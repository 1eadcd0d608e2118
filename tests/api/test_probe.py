import json
import pytest
from tests.api.conftest import Site
pytestmark = pytest.mark.asyncio(loop_scope="module")

async def test_probe(site: Site) -> None:
    def show(label, r):
        print(f"--- {label}: {r.status_code} {dict(r.headers)}\n{r.text[:1500]}")
    r = await site.post("/tasks", {"task_id": "deploy_ios_update", "execution_handler": "builtin:echo",
        "parameter_schema": {"type":"object","properties":{"rollout_percentage":{"type":"integer","maximum":100}},"required":["update_version"]}})
    show("task", r)
    r = await site.post("/jobs", { "task_id": "deploy_ios_update",
  "schedule": { "type": "CRON", "expression": "0 2 * * TUE", "timezone": "America/Cupertino" },
  "parameters": { "update_version": "17.2.1", "target_region": "US-East", "rollout_percentage": 25 } })
    show("job", r)
    jid = r.json()["job_id"]
    show("get", await site.get(f"/jobs/{jid}"))
    show("execs", await site.get(f"/jobs/{jid}/executions?limit=50&status=RUNNING"))
    show("list", await site.get(f"/jobs?user_id=oscar&task_type=deploy_ios_update&created_after=0"))
    show("bad", await site.post("/jobs", {"task_id":"deploy_ios_update","schedule":{"type":"IMMEDIATE"},"parameters":{"rollout_percentage":"x"}}))
    show("nokey", await site.get("/jobs", user=None))
    show("404", await site.get("/nope"))
    show("404 html", await site.get("/nope", headers={"accept":"text/html"}))
    show("405", await site.request("DELETE", "/jobs"))
    show("404 uuid", await site.get("/jobs/abc"))
    show("head", await site.request("HEAD", "/jobs"))
    show("options", await site.request("OPTIONS", "/jobs"))
    show("text", await site.post("/jobs", b'{"task_id":"deploy_ios_update","schedule":{"type":"IMMEDIATE"},"parameters":{"update_version":"1"}}', headers={"Content-Type":"text/plain"}))
    show("notype", await site.request("POST", "/jobs", content=b'{"task_id":"deploy_ios_update","schedule":{"type":"IMMEDIATE"},"parameters":{"update_version":"1"}}'))
    show("form", await site.request("POST", "/jobs", data={"task_id":"x"}))
    show("multipart", await site.request("POST", "/jobs", data={"task_id":"x"}, files={"f": b"x"}))
    show("msgpack", await site.post("/jobs", b'\x81', headers={"Content-Type":"application/x-msgpack"}))
    show("badtype", await site.post("/jobs", b'{}', headers={"Content-Type":"garbage;;=/"}))
    show("big", await site.post("/jobs", b' '*(1024*1024+1)))
    show("unknown", await site.post("/jobs", {"task_id":"deploy_ios_update","schedule":{"type":"IMMEDIATE","a~/b":1}}))
    show("missing", await site.post("/jobs", {"task_id":"deploy_ios_update"}))
    show("tag", await site.post("/jobs", {"task_id":"deploy_ios_update","schedule":{"type":"IMMEDIATE"},"parameters":{"update_version":"1"}, "tags":["a\n"]}))
    for q in ("0","-1","1000000000","1e9","abc","","99999999999999999999999", "9"*5000, "1.0", "1&limit=2", "true", "%00", "%ff"):
        show("limit "+q[:20], await site.get(f"/jobs?limit={q}"))
    for q in ("%00","%ff","%ED%A0%80","'"):
        show("user "+q, await site.get(f"/jobs?user_id={q}"))
        show("created "+q, await site.get(f"/jobs?created_after={q}"))
        show("cursor "+q, await site.get(f"/jobs?cursor={q}"))
        show("tcursor "+q, await site.get(f"/tasks?cursor={q}"))
        show("status "+q, await site.get(f"/executions?status={q}"))
        show("task "+q, await site.get(f"/tasks/{q}"))
        show("task "+q, await site.request("DELETE", f"/tasks/{q}"))
    r = await site.http.get("/schema/openapi.json"); show("openapi", r); json.dump(r.json(), open("/tmp/apitest/openapi.json","w"), indent=1)
