# Prometheus with promtool, for tests of the alert rules.
# shellcheck shell=bash disable=SC2034

program=prometheus

# shellcheck source=dev/services.d/lib/installed.sh
. dev/services.d/lib/installed.sh
