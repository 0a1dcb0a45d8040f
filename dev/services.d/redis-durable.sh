# Redis that confirms a write when it is on disk, no password. Tests kill, fill and stop this server.
# Tests that run at the same time use `redis`.
#   url             redis://host:port
#   crash           SIGKILL and start again; returns when it responds
#   kill            SIGKILL
#   start           returns when it responds
#   pause, unpause  SIGSTOP and SIGCONT: connections stay open, nothing responds
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url crash kill start pause unpause)

server_port=$((port_base + 380))
server_settings='appendfsync always'

# shellcheck source=dev/services.d/lib/redis.sh
. dev/services.d/lib/redis.sh
