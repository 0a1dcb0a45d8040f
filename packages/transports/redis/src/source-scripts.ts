import type { Script } from '@redrive/redis-internal'
import { withShared } from './scripts.ts'

/** Scripts of the control plane and of the sink. scripts.ts describes the rules of all scripts. */

/** Adds entries. KEYS: streams. ARGV: for each stream the number of its fields, then the fields. */
export const ADD: Script = withShared(`
local at = 1
for _, stream in ipairs(KEYS) do
  local count = tonumber(ARGV[at])
  redis.call('XADD', stream, '*', unpack(ARGV, at + 1, at + count))
  at = at + 1 + count
end
return 1
`)

/**
 * Adds dead letters that were drained. KEYS: stream. ARGV: fields. The rest of an old retention must not remove them: the
 * stream has no limit until the next dead letter is stored.
 */
export const PUT_BACK: Script = withShared(`
redis.call('XADD', KEYS[1], '*', unpack(ARGV))
redis.call('PERSIST', KEYS[1])
return 1
`)

/** Publishes a replay once. KEYS: ids of replays, stream of the group. ARGV: replay id, fields. */
export const PUBLISH: Script = withShared(`
-- A day: a control plane repeats a publish within minutes.
local KEPT_MS = 86400000
local now = clock()
if redis.call('ZADD', KEYS[1], 'NX', now, ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 2))
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - KEPT_MS)
redis.call('PEXPIRE', KEYS[1], KEPT_MS)
return 1
`)

/**
 * Counts entries that a consumer could claim now, and those in flight. KEYS: streams, sorted set of retries. ARGV:
 * group, maximum per stream. The lag that the server counts is wrong after the removal of an unread entry, so it is
 * used only for more entries than the maximum.
 */
export const LAG: Script = withShared(`
local group, most = ARGV[1], tonumber(ARGV[2])
local total = redis.call('ZCOUNT', KEYS[#KEYS], '-inf', clock())
for i = 1, #KEYS - 1 do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    -- Without the group, no entry was read.
    local facts = { ['last-delivered-id'] = '0-0', pending = 0 }
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', KEYS[i])) do
      if info[2] == group then
        for j = 1, #info, 2 do facts[info[j]] = info[j + 1] end
      end
    end
    local unread = #redis.call('XRANGE', KEYS[i], '(' .. facts['last-delivered-id'], '+', 'COUNT', most)
    if unread == most then unread = math.max(unread, facts.lag or 0) end
    total = total + unread + facts.pending
  end
end
return total
`)

/** Counts the entries of a stream. KEYS: stream. */
export const DEPTH: Script = withShared(`return redis.call('XLEN', KEYS[1])`)

/** Rejects when the server would reject an entry; adds nothing, because the key does not exist. KEYS: key. */
export const CHECK: Script = withShared(`
redis.call('XADD', KEYS[1], 'NOMKSTREAM', '*', 'check', '1')
return 1
`)
