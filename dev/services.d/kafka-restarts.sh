# Kafka as in kafka.sh, only for tests that restart it: they need not wait until the other tests have
# ended, and the broker recovers quickly because it has few topics.
# shellcheck shell=bash disable=SC2034

broker_port=$((port_base + 920))
controller_port=$((port_base + 921))

# shellcheck source=dev/services.d/kafka.sh
. dev/services.d/kafka.sh
