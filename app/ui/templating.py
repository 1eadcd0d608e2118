"""How pages are rendered."""

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar.plugins.jinja import JinjaTemplateEngine
from litestar.template import TemplateConfig
from markupsafe import Markup

from app import __version__
from app.domain.schedule_words import rhythm
from app.paths import TEMPLATES_DIR
from app.ui import charts, execution_words, log_text, run_strip, task_words, words
from app.ui.assets import STATIC_DIR, asset_urls
from app.ui.job_form_words import ahead, wall


def template_config() -> TemplateConfig[JinjaTemplateEngine]:
    """Return the template engine: everything is escaped, and a name that does not exist is an error."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES_DIR),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.globals |= {
        "asset": asset_urls(STATIC_DIR).__getitem__,
        "bars": charts.bars,
        "rhythm": rhythm,
        "run_bars": run_strip.run_bars,
        "run_shapes": run_strip.run_shapes,
        "sparkline": charts.sparkline,
        "version": __version__,
    }
    environment.filters.update(
        absolute=words.absolute,
        ahead=ahead,
        actor=words.actor,
        allowed_words=task_words.allowed_words,
        capped=words.capped,
        clock=words.clock,
        counted=words.counted,
        deed=words.deed,
        differences=words.differences,
        duration=words.duration,
        error_line=words.error_line,
        handler=task_words.handler,
        json_shown=execution_words.json_shown,
        lateness=words.lateness,
        listed_error=execution_words.listed_error,
        local_time=execution_words.local_time,
        log_text=log_text.log_text,
        percent=words.percent,
        plain=plain,
        precise=execution_words.precise,
        pretty=words.pretty,
        priority_word=task_words.priority_word,
        relative=words.relative,
        retry_words=task_words.retry_words,
        rfc3339=words.rfc3339,
        rule_words=task_words.rule_words,
        short_id=words.short_id,
        size=words.size,
        strip_words=run_strip.strip_words,
        wall=wall,
        told_deed=words.told_deed,
        weekday=words.weekday,
        value_words=task_words.value_words,
    )
    return TemplateConfig(instance=JinjaTemplateEngine.from_environment(environment))


def plain(text: str) -> str:
    """Return text as it was before it was made safe for an element.

    What a template writes into a variable, such as an example from a file, is not safe for an attribute: its own
    quotation marks stand there as they are.
    """
    return text.unescape() if isinstance(text, Markup) else text
