"""Spans and metrics of OpenTelemetry, as a listener: the extra ``otel`` has what it needs."""

from __future__ import annotations

import time
from typing import Any

from fuse_index.errors import InputError
from fuse_index.signals.counters import counts_of
from fuse_index.signals.events import Event, PlanMade

_ATTRIBUTES = ("index", "kind", "reason", "detail", "operation", "version", "task", "outcome", "blocks", "snapshot")


class Telemetry:
    """Makes a span ``fuse_index.…`` of each event, within the span that is current where it happens, and counts it.

    Metrics are ``fuse_index.plans``, ``fuse_index.commits`` and others, as ``Counters`` names them, and the histogram
    ``fuse_index.plan.duration`` in seconds.

    Args:
        tracer_provider: Of the API; by default the process's.
        meter_provider: Of the API; by default the process's.

    Raises:
        InputError: OpenTelemetry is not installed.
    """

    def __init__(self, tracer_provider: Any = None, meter_provider: Any = None) -> None:
        try:
            import opentelemetry.metrics as metrics
            import opentelemetry.trace as trace
        except ImportError:
            raise InputError("OpenTelemetry is not installed: pip install opentelemetry-api") from None
        self._tracer = trace.get_tracer("fuse_index", tracer_provider=tracer_provider)
        self._meter = metrics.get_meter("fuse_index", meter_provider=meter_provider)
        self._durations = self._meter.create_histogram("fuse_index.plan.duration", "s", "How long planning took")
        self._counters: dict[str, Any] = {}

    def fuse_index_events(self, event: Event) -> None:
        """Make a span of an event, and count it."""
        ended = time.time_ns()
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in type(event).__name__)
        span = self._tracer.start_span(
            f"fuse_index.{name.strip('_')}",
            attributes=_attributes(event),
            start_time=ended - int(event.seconds * 1e9),
        )
        span.end(ended)
        for counted, count in counts_of(event).items():
            if counted not in self._counters:
                self._counters[counted] = self._meter.create_counter(f"fuse_index.{counted}")
            self._counters[counted].add(count, {"table": event.table})
        if isinstance(event, PlanMade):
            self._durations.record(event.seconds, {"table": event.table})


def _attributes(event: Event) -> dict[str, str | int]:
    told: dict[str, str | int] = {"fuse_index.table": event.table}
    if isinstance(event, PlanMade):
        account = event.explanation
        told |= {"fuse_index.blocks": account.blocks.total, "fuse_index.blocks_read": account.blocks.kept}
    told |= {
        f"fuse_index.{name}": value
        for name in _ATTRIBUTES
        if isinstance(value := getattr(event, name, None), str | int)
    }
    return told
