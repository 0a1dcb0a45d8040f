import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { type Entry, readHistory } from '../../evidence/history.ts'
import { USUAL_MIX } from '../../evidence/message.ts'
import { becomesTrue, lasting } from '../../harness/wait.ts'
import { memoryAlarm } from '../cluster.ts'
import type { RabbitScenario, RabbitWorld } from '../world.ts'
import { underLoad } from './load.ts'

const RATE = 350
const MIX = { ...USUAL_MIX, business: 25 }
/** 30 s until an operator is notified, as where dead letters are not accepted. */
const REPORTED_MS = 30_000
/** 50 MB: allowed growth of a consumer while its hand-offs are blocked, whatever the backlog. */
const GROWTH_BYTES = 50 * 1024 * 1024

export const memoryAlarmed: RabbitScenario = {
  name: 'memory-alarm',
  story:
    'the broker is short of memory and accepts no copies while messages fail; a consumer dies during this',
  service: 'rabbitmq-cluster',
  messages: { quick: 1_500, full: 10_000 },
  async play(world) {
    const load = { consumers: 2, ratePerSecond: RATE, mix: MIX }
    world.atEnd(() => memoryAlarm('off'))
    await underLoad(world, load, async (fleet) => {
      await lasting(world.scale === 'full' ? 10_000 : 2_000)
      const end = world.fault('memory alarm')
      const parts = await alarmAmongMessages(world)
      await becomesTrue(() => isReported(readHistory(world.folder)), {
        withinMs: REPORTED_MS,
        everyMs: 500,
      })
      await lasting(world.scale === 'full' ? 15_000 : 4_000)
      const [victim] = fleet.members()
      victim?.signal('SIGKILL')
      await victim?.gone
      await lasting(1_000)
      await memoryAlarm('off')
      fleet.start()
      end()
      await Promise.all(parts)
    })
  },
  summarize: (evidence) => `memory +${inMb(Math.max(0, ...growthIn(evidence).values()))}`,
  check: (evidence) => [...checkMemory(evidence), ...checkBlocked(evidence)],
}

/**
 * Sends messages until the alarm is active. RabbitMQ notifies only connections that publish after
 * the alarm, and the time until the alarm is unknown. Messages on their way are then blocked until
 * the alarm ends.
 */
async function alarmAmongMessages(world: RabbitWorld): Promise<readonly Promise<void>[]> {
  const parts: Promise<void>[] = []
  let isOn = false
  const alarm = memoryAlarm('on').finally(() => {
    isOn = true
  })
  while (!isOn) {
    const part = `-${parts.length}`
    const ratePerSecond = RATE / 2
    parts.push(world.produce({ ratePerSecond, mix: MIX, messages: ratePerSecond, part }))
    await Promise.race([alarm, lasting(1_000)])
  }
  await alarm
  return parts
}

/** Returns the growth of each process since the start of the fault. */
function growthIn({ entries }: Evidence): ReadonlyMap<string, number> {
  const begins = entries.find((entry) => entry.what === 'fault')?.at ?? 0
  const memory = entries.flatMap((entry) =>
    entry.what === 'memory' && entry.at >= begins ? [entry] : [],
  )
  // Processes that started later grow because of their start.
  const old = [...Map.groupBy(memory, ({ by }) => by)].filter(
    ([, [first]]) => first !== undefined && first.at < begins + 1_000,
  )
  return new Map(
    old.map(([by, samples]) => [
      by,
      Math.max(...samples.map(({ bytes }) => bytes)) - (samples[0]?.bytes ?? 0),
    ]),
  )
}

const inMb = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`

function checkMemory(evidence: Evidence): readonly Violation[] {
  return [...growthIn(evidence)]
    .filter(([, growth]) => growth >= GROWTH_BYTES)
    .map(([by, growth]) => ({ rule: 'scenario', text: `${by} grew by ${inMb(growth)}` }))
}

const isReported = (entries: readonly Entry[]) =>
  entries.some((entry) => entry.what === 'event' && entry.type === 'broker_blocked')

function checkBlocked({ entries }: Evidence): readonly Violation[] {
  return isReported(entries)
    ? []
    : [{ rule: 'scenario', text: 'no consumer reported that the broker was blocked' }]
}
