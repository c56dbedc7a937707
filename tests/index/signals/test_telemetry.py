"""OpenTelemetry gets a span of each event, within the span where it happens, and counts."""

from uuid import uuid4

import pytest

import fuse_index as fuse
from fuse_index.signals.telemetry import Telemetry

pytest.importorskip("opentelemetry.sdk")


def test_spans_and_metrics() -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    with (
        fuse.listen(Telemetry(tracers, MeterProvider([reader]))),
        tracers.get_tracer("test").start_as_current_span("outer") as outer,
    ):
        table = fuse.create_table(f"memory://spans-{uuid4().hex}", "id BIGINT", properties={"block_rows": 2})
        table.append([{"id": number} for number in range(6)])
        table.count("id = 3")

    finished = {span.name: span for span in spans.get_finished_spans()}
    assert set(finished) == {"fuse_index.commit_made", "fuse_index.plan_made", "outer"}
    plan = finished["fuse_index.plan_made"]
    assert plan.parent is not None
    assert plan.parent.span_id == outer.get_span_context().span_id
    assert plan.end_time > plan.start_time
    assert dict(plan.attributes)["fuse_index.blocks_read"] == 1
    metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    counted = {metric.name: metric.data.data_points[0] for metric in metrics}
    assert counted["fuse_index.plans"].value == 1
    assert counted["fuse_index.plan.duration"].count == 1
