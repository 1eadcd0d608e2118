"""How pages are rendered."""

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.template import TemplateConfig
from markupsafe import Markup

from app import __version__
from app.domain.schedule_words import rhythm
from app.paths import TEMPLATES_DIR
from app.ui import (
    charts,
    execution_words,
    limit_words,
    log_text,
    run_strip,
    task_words,
    words,
    workflow_words,
)
from app.ui.assets import STATIC_DIR, asset_urls
from app.ui.job_form_words import ahead, wall


def template_config(*, house_name: str = "") -> TemplateConfig[JinjaTemplateEngine]:
    """Return the template engine: everything is escaped, and a name that does not exist is an error.

    `house_name` stands in the bar of every page, such as `staging`.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES_DIR),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= _GLOBALS | {"asset": asset_urls(STATIC_DIR).__getitem__, "house_name": house_name}
    environment.filters |= {function.__name__: function for function in _FILTERS}
    return TemplateConfig(instance=JinjaTemplateEngine.from_environment(environment))


def plain(text: str) -> str:
    """Return text as it was before it was made safe for an element.

    What a template writes into a variable, such as an example from a file, is not safe for an attribute: its own
    quotation marks stand there as they are.
    """
    return text.unescape() if isinstance(text, Markup) else text


_GLOBALS = {
    "bars": charts.bars,
    "rhythm": rhythm,
    "run_bars": run_strip.run_bars,
    "run_shapes": run_strip.run_shapes,
    "sparkline": charts.sparkline,
    "version": __version__,
}
_FILTERS = (
    ahead,
    execution_words.json_shown,
    execution_words.listed_error,
    execution_words.local_time,
    execution_words.precise,
    execution_words.waits_for,
    limit_words.at_once_words,
    limit_words.label_words,
    limit_words.needs_words,
    limit_words.rate_words,
    log_text.log_text,
    plain,
    run_strip.strip_words,
    task_words.allowed_words,
    task_words.handler,
    task_words.priority_word,
    task_words.retry_words,
    task_words.rule_words,
    task_words.value_words,
    wall,
    workflow_words.overlap_words,
    workflow_words.run_mark,
    workflow_words.when_words,
    workflow_words.workflow_mark,
    workflow_words.workflow_name,
    words.absolute,
    words.actor,
    words.capped,
    words.clock,
    words.counted,
    words.deed,
    words.differences,
    words.duration,
    words.error_line,
    words.lateness,
    words.percent,
    words.pretty,
    words.relative,
    words.rfc3339,
    words.short_id,
    words.size,
    words.told_deed,
    words.weekday,
)
"""What templates turn values into words with, each by its own name."""
