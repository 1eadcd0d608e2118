# hello_tasks.py, where ONTHEDOT_TASK_MODULES=hello_tasks finds it
from app import Context, task


@task("hello")
async def hello(ctx: Context) -> dict[str, str]:
    ctx.logger.info("running for %s", ctx.scheduled_time)
    return {"greeting": ctx.parameters["greeting"]}
