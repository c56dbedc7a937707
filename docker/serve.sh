#!/bin/sh
# Makes the warehouse where there is none, and serves it. WAREHOUSE: its URL; what comes besides are options of serve.
set -eu

fuse-index catalog init "$WAREHOUSE"
exec fuse-index serve --warehouse "$WAREHOUSE" "$@"
