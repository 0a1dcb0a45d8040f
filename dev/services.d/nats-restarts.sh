# A second NATS server for tests that restart, kill or fill it. Tests that run at the same time use `nats`.
# shellcheck shell=bash disable=SC2034,SC2154

client_port=$((port_base + 224))
monitor_port=$((port_base + 225))

# shellcheck source=dev/services.d/nats.sh
. dev/services.d/nats.sh
