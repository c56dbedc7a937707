"""A session of a server's client, held by its id, so that it ends when Spark lets go of it."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession


class ServedSession(SparkSession):
    """A classic session that the JVM looks up by its id each time it is used, and that nothing here keeps alive.

    ``bridge``: the ``Bridge`` of the JVM.
    """

    def __init__(self, context: SparkContext, bridge: Any, session_id: str) -> None:
        self._bridge, self.session_id = bridge, session_id
        super().__init__(context, self._jsparkSession)

    @property
    def _jsparkSession(self) -> Any:  # noqa: N802
        return self._bridge.served(self.session_id)

    @_jsparkSession.setter
    def _jsparkSession(self, session: Any) -> None:  # noqa: N802
        """Keep nothing: PySpark's constructor would."""
