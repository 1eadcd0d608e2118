"""What answers without a key: health, metrics, and the pages behind problem types."""

from app.api.health import HEALTH_HANDLERS
from app.api.metrics import metrics

PUBLIC_HANDLERS = [*HEALTH_HANDLERS, metrics]
