import type { FoundMessage, Place } from '../evidence/evidence.ts'
import { isAsSent } from '../evidence/message.ts'
import type { BrokerContent, Depths } from '../harness/broker-server.ts'
import { repeated } from '../harness/wait.ts'
import { BACK, type Broker, GROUP } from './broker.ts'
import type { RedisWorld } from './world.ts'

/** Lists the messages of a stream and its group in one step, so that none is missed while it moves. */
const READ = `
local found = {}
local function put(place, fields) found[#found + 1] = { place, fields } end
local function range(key, from, to)
  return redis.call('EXISTS', key) == 1 and redis.call('XRANGE', key, from, to) or {}
end
local stream, own, retry, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local last = '-'
if redis.call('EXISTS', stream) == 1 then
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    if info[2] == ARGV[1] then
      last = '(' .. info[8]
      for _, one in ipairs(redis.call('XPENDING', stream, ARGV[1], '-', '+', 100000)) do
        for _, entry in ipairs(range(stream, one[1], one[1])) do put('source', entry[2]) end
      end
    end
  end
end
for _, entry in ipairs(range(stream, last, '+')) do put('source', entry[2]) end
for _, entry in ipairs(range(own, '-', '+')) do put('source', entry[2]) end
for _, packed in ipairs(redis.call('ZRANGE', retry, 0, -1)) do put('delay', cmsgpack.unpack(packed)[2]) end
for _, entry in ipairs(range(dead, '-', '+')) do put('dlq', entry[2]) end
return found`

type Row = readonly [place: Buffer, fields: readonly Buffer[]]

async function keysOf({ client }: Broker, pattern: string): Promise<readonly string[]> {
  const keys: string[] = []
  let cursor = '0'
  do {
    const [next, page] = await client.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000)
    keys.push(...page)
    cursor = next
  } while (cursor !== '0')
  return keys
}

async function contentOf({ client }: Broker, stream: string): Promise<readonly FoundMessage[]> {
  const [own, retry, dead] = ['own', 'retry', 'dlq'].map((name) => `{${stream}}:${GROUP}:${name}`)
  const keys = [stream, own ?? '', retry ?? '', dead ?? '']
  const rows = (await client.callBuffer('eval', READ, 4, ...keys, GROUP)) as readonly Row[]
  return rows.map(([place, fields]) => foundIn(stream, String(place) as Place, fields))
}

function foundIn(queue: string, place: Place, fields: readonly Buffer[]): FoundMessage {
  const byName = new Map<string, Buffer>()
  for (let i = 0; i + 1 < fields.length; i += 2) {
    byName.set(String(fields[i]), fields[i + 1] ?? Buffer.alloc(0))
  }
  const id = String(byName.get('redrive-id'))
  const body = byName.get('redrive-body') ?? byName.get('body') ?? Buffer.alloc(0)
  const isQuarantined = place === 'dlq' && byName.has('redrive-quarantined')
  return {
    ...{ id, queue, place: isQuarantined ? 'quarantine' : place },
    reason: byName.get('redrive-reason')?.toString(),
    isWhole: isAsSent(id, body),
  }
}

async function found({ broker, run }: RedisWorld): Promise<readonly FoundMessage[]> {
  const streams = await repeated(() => keysOf(broker, `${run}*`), BACK)
  const all: FoundMessage[] = []
  for (const stream of streams) all.push(...(await repeated(() => contentOf(broker, stream), BACK)))
  return all
}

async function depths(world: RedisWorld): Promise<Depths> {
  const counts: Record<Place, number> = { source: 0, delay: 0, dlq: 0, quarantine: 0 }
  for (const { place } of await found(world)) counts[place] += 1
  return counts
}

async function remove({ broker, run }: RedisWorld): Promise<void> {
  const keys = await keysOf(broker, `*${run}*`)
  if (keys.length > 0) await broker.client.del(...keys)
}

export const CONTENT: BrokerContent<RedisWorld> = { depths, found, remove }
