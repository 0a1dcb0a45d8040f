# Alertmanager, for the drill of the alerts.
# shellcheck shell=bash disable=SC2034

program=prometheus-alertmanager

# shellcheck source=dev/services.d/lib/installed.sh
. dev/services.d/lib/installed.sh
