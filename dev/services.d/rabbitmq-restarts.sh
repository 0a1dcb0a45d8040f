# RabbitMQ as in rabbitmq.sh, only for tests that restart it: they need not wait until the other tests
# have ended.
# shellcheck shell=bash disable=SC2034

# The cluster uses the numbers 1 to 3.
node_number=5

# shellcheck source=dev/services.d/rabbitmq.sh
. dev/services.d/rabbitmq.sh
