import { type Script, script } from '@redrive/redis-internal'

/**
 * Scripts on the failed jobs of a queue of BullMQ. They read the keys of BullMQ and write only keys of Redrive: BullMQ itself
 * changes jobs. Each does a bounded amount of work, because a script blocks the server.
 */
const SHARED = `
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function leaseOf(leases, id)
  local text = redis.call('HGET', leases, id)
  if not text then return 0, '' end
  local untilMs, token = string.match(text, '^(%d+):(.*)$')
  return tonumber(untilMs), token
end

-- The record of an ended replay begins with a sign: '!' after a failure, '=' after a confirmation.
local function isOpen(record)
  return string.sub(record, 1, 1) == '{'
end
`

const withShared = (body: string): Script => script(SHARED + body)

/**
 * Leases failed jobs that the catalog does not have. KEYS: failed, ingested, leases. ARGV: start, examined, maximum,
 * token, lease in ms or '' to read without leases. The start is a rank, or '>' and a time in ms. Returns the next rank or
 * '' at the end, the time of the last examined job, then ids and times of the leased jobs.
 */
export const TAKE: Script = withShared(`
local start, examined, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now, isLeasing = clock(), ARGV[5] ~= ''
if string.sub(start, 1, 1) == '>' then
  start = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. string.sub(start, 2))
end
local jobs = redis.call('ZRANGE', KEYS[1], start, start + examined - 1, 'WITHSCORES')
local result, last = { start + #jobs / 2, '' }, ''
for i = 1, #jobs, 2 do
  local id, at = jobs[i], jobs[i + 1]
  local isFree = not isLeasing or leaseOf(KEYS[3], id) <= now
  if isFree and redis.call('ZSCORE', KEYS[2], id) ~= at then
    if #result == 2 + 2 * most then
      -- The next call continues with this job.
      result[1] = start + (i - 1) / 2
      examined = 0
      break
    end
    if isLeasing then
      redis.call('HSET', KEYS[3], id, string.format('%d', now + ARGV[5]) .. ':' .. ARGV[4])
    end
    result[#result + 1], result[#result + 2] = id, at
  end
  last = at
end
if #jobs / 2 < examined then result[1] = '' end
result[1], result[2] = tostring(result[1]), last
return result
`)

/**
 * Ends leases of a token. KEYS: ingested, leases, replays, failed, cycles. ARGV: token, 'release' or 'abandon', then for
 * each job id and time. A released job is ingested until it fails again. Its last replay has failed: '!' before the
 * record states that. A failure that the replay was made from is an earlier one.
 */
export const END_TAKE: Script = withShared(`
for i = 3, #ARGV, 2 do
  local id, at = ARGV[i], ARGV[i + 1]
  local _, token = leaseOf(KEYS[2], id)
  if token == ARGV[1] then
    redis.call('HDEL', KEYS[2], id)
    -- A replay may have taken it out of the failed jobs in the meantime.
    if ARGV[2] == 'release' and redis.call('ZSCORE', KEYS[4], id) == at then
      redis.call('ZADD', KEYS[1], at, id)
      redis.call('HINCRBY', KEYS[5], id, 1)
      local record = redis.call('HGET', KEYS[3], id)
      if record and isOpen(record) and cjson.decode(record).failedAt ~= at then
        redis.call('HSET', KEYS[3], id, '!' .. record)
      end
    end
  end
end
return 1
`)

/**
 * Removes marks of jobs that are not failed any more, and the cycles of removed jobs. KEYS: cycles, ingested, failed, key
 * of a job without its id. ARGV: cursor. Returns the next cursor.
 */
export const PRUNE: Script = withShared(`
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 500)
for i = 1, #page[2], 2 do
  local id = page[2][i]
  if not redis.call('ZSCORE', KEYS[3], id) then redis.call('ZREM', KEYS[2], id) end
  if redis.call('EXISTS', KEYS[4] .. id) == 0 then redis.call('HDEL', KEYS[1], id) end
end
return page[1]
`)

/** Removes leases that have ended: their jobs may not exist any more. KEYS: leases. ARGV: cursor. Returns the next cursor. */
export const PRUNE_LEASES: Script = withShared(`
local now, page = clock(), redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 500)
for i = 1, #page[2], 2 do
  if leaseOf(KEYS[1], page[2][i]) <= now then redis.call('HDEL', KEYS[1], page[2][i]) end
end
return page[1]
`)

/**
 * Removes old records of replays. KEYS: replays. ARGV: cursor, age in ms of open records, age of ended ones. Returns the
 * next cursor.
 */
export const PRUNE_REPLAYS: Script = withShared(`
local now, page = clock(), redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 500)
for i = 1, #page[2], 2 do
  local id, record = page[2][i], page[2][i + 1]
  local keptMs = isOpen(record) and ARGV[2] or ARGV[3]
  local at = cjson.decode(string.match(record, '{.*')).recordedAt
  if at < now - tonumber(keptMs) then redis.call('HDEL', KEYS[1], id) end
end
return page[1]
`)

/**
 * Removes marks, so that the jobs are drained again as they were. KEYS: ingested, failed, cycles. ARGV: ids. Returns the
 * ids that are not failed.
 */
export const UNMARK: Script = withShared(`
local gone = {}
for _, id in ipairs(ARGV) do
  if redis.call('ZREM', KEYS[1], id) == 1 then redis.call('HINCRBY', KEYS[3], id, -1) end
  if not redis.call('ZSCORE', KEYS[2], id) then gone[#gone + 1] = id end
end
return gone
`)

/** Counts failed jobs that the catalog does not have. KEYS: failed, ingested. ARGV: maximum to compare one by one. */
export const COUNT_FAILED: Script = withShared(`
local failed, ingested = redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2])
if ingested <= tonumber(ARGV[1]) then ingested = redis.call('ZINTERCARD', 2, KEYS[1], KEYS[2]) end
return math.max(0, failed - ingested)
`)

/** Records a replay before BullMQ starts it. KEYS: replays. ARGV: id, record, time to keep in ms. */
export const RECORD_REPLAY: Script = withShared(`
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`)

/**
 * Removes the mark of a failure, after BullMQ has started its replay. Until then, a drain would find that failure again.
 * KEYS: ingested. ARGV: id, time of the failure.
 */
export const UNMARK_REPLAYED: Script = withShared(`
if redis.call('ZSCORE', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('ZREM', KEYS[1], ARGV[1]) end
return 1
`)

/**
 * Reads for each job the record of its last replay, the number of its ingested failures and the fields of BullMQ. KEYS:
 * replays, cycles, key of a job without its id. ARGV: ids.
 */
export const READ_JOBS: Script = withShared(`
local result = {}
for i, id in ipairs(ARGV) do
  local record = redis.call('HGET', KEYS[1], id) or ''
  result[i] = { record, redis.call('HGET', KEYS[2], id) or '0', redis.call('HGETALL', KEYS[3] .. id) }
end
return result
`)

/** Reads the records of the last replays. KEYS: replays. ARGV: ids. Returns '' for a job without a replay. */
export const READ_REPLAYS: Script = withShared(`
local result = {}
for i, id in ipairs(ARGV) do result[i] = redis.call('HGET', KEYS[1], id) or '' end
return result
`)

/** Counts jobs that workers could handle now, or handle now. KEYS: lists, then the sorted set of prioritized jobs. */
export const COUNT_WAITING: Script = withShared(`
local total = redis.call('ZCARD', KEYS[#KEYS])
for i = 1, #KEYS - 1 do total = total + redis.call('LLEN', KEYS[i]) end
return total
`)

/**
 * Reads replays of finished jobs. KEYS: replays, completed, key of a job without its id. ARGV: cursor, maximum.
 * Returns the next cursor, then id, record and the time of completion, or '' when the job does not exist any more.
 */
export const READ_FINISHED: Script = withShared(`
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local result = { page[1] }
for i = 1, #page[2], 2 do
  local id, record = page[2][i], page[2][i + 1]
  local at = redis.call('ZSCORE', KEYS[2], id)
  if isOpen(record) and (at or redis.call('EXISTS', KEYS[3] .. id) == 0) then
    for _, value in ipairs({ id, record, at or '' }) do result[#result + 1] = value end
  end
end
return result
`)

/** Marks records that did not change as confirmed. KEYS: replays. ARGV: for each job id and record. */
export const CONFIRM_REPLAYS: Script = withShared(`
for i = 1, #ARGV, 2 do
  local id, record = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', KEYS[1], id) == record then redis.call('HSET', KEYS[1], id, '=' .. record) end
end
return 1
`)
