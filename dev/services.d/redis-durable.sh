# Redis that answers when a write is on disk, no password: the one that tests kill, fill and stop.
# `redis` has the tests that run at the same time as these.
#   url             redis://host:port
#   crash           SIGKILL and start again; returns when it answers
#   kill            SIGKILL
#   start           returns when it answers
#   pause, unpause  SIGSTOP and SIGCONT: connections stay open, nothing answers
# shellcheck shell=bash disable=SC2034,SC2154

extras=(url crash kill start pause unpause)

server_port=$((port_base + 380))
server_settings='appendfsync always'

# shellcheck source=dev/services.d/lib/redis.sh
. dev/services.d/lib/redis.sh
