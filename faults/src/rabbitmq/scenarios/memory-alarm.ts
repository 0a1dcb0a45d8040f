import type { Evidence, Violation } from '../../evidence.ts'
import { type Entry, readHistory } from '../../history.ts'
import { USUAL_MIX } from '../../message.ts'
import { becomesTrue, lasting } from '../../wait.ts'
import { memoryAlarm } from '../cluster.ts'
import type { RabbitScenario, RabbitWorld } from '../world.ts'
import { underLoad } from './load.ts'

const RATE = 350
const MIX = { ...USUAL_MIX, business: 25 }
/** Half a minute until somebody is told, as where dead letters are not taken. */
const TOLD_MS = 30_000
/** 50 MB: what a consumer may grow by while its hand-offs are held up, whatever the backlog. */
const GROWTH_BYTES = 50 * 1024 * 1024

export const memoryAlarmed: RabbitScenario = {
  name: 'memory-alarm',
  story:
    'the broker is short of memory and takes no copies while messages fail; a consumer dies meanwhile',
  service: 'rabbitmq-cluster',
  messages: { quick: 1_500, full: 10_000 },
  async play(world) {
    const load = { consumers: 2, ratePerSecond: RATE, mix: MIX }
    world.atEnd(() => memoryAlarm('off'))
    await underLoad(world, load, async (fleet) => {
      await lasting(world.scale === 'full' ? 10_000 : 2_000)
      const end = world.fault('memory alarm')
      const parts = await alarmAmongMessages(world)
      await becomesTrue(() => isTold(readHistory(world.folder)), {
        withinMs: TOLD_MS,
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
  tell: (evidence) => `memory +${inMb(Math.max(0, ...growthIn(evidence).values()))}`,
  check: (evidence) => [...checkMemory(evidence), ...checkBlocked(evidence)],
}

/**
 * Only who publishes after the alarm is told that the broker is blocked, and nobody knows how long it takes
 * to come: until it is there, messages come. What is on its way then is held up until the alarm is over.
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

/** By how much each process grew since the fault began. */
function growthIn({ entries }: Evidence): ReadonlyMap<string, number> {
  const begins = entries.find((entry) => entry.what === 'fault')?.at ?? 0
  const memory = entries.flatMap((entry) =>
    entry.what === 'memory' && entry.at >= begins ? [entry] : [],
  )
  // Those that started later grow because they start.
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

const isTold = (entries: readonly Entry[]) =>
  entries.some((entry) => entry.what === 'event' && entry.type === 'broker_blocked')

function checkBlocked({ entries }: Evidence): readonly Violation[] {
  return isTold(entries)
    ? []
    : [{ rule: 'scenario', text: 'nobody was told that the broker was blocked' }]
}
