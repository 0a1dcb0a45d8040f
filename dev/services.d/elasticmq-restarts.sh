# A second ElasticMQ for tests that restart it. It stores queues and messages in files.
# shellcheck shell=bash disable=SC2034,SC2154

server_port=$((port_base + 325))
is_stored=true

# shellcheck source=dev/services.d/elasticmq.sh
. dev/services.d/elasticmq.sh
