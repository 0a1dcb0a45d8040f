# Redis as in redis-durable.sh, only for the test of the transport that restarts it: other tests stop and fill
# redis-durable at the same time.
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url crash kill start pause unpause)

server_port=$((port_base + 381))
server_settings='appendfsync always'

# shellcheck source=dev/services.d/lib/redis.sh
. dev/services.d/lib/redis.sh
