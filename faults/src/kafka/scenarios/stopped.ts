import type { Evidence, Violation } from '../../evidence.ts'
import { POLICY } from '../../consumer-options.ts'
import { type Member, ready } from '../../fleet.ts'
import { readHistory } from '../../history.ts'
import { plan, USUAL_MIX } from '../../message.ts'
import { type Deadline, lasting, until } from '../../wait.ts'
import { createTopics } from '../broker.ts'
import { type KafkaScenario, type KafkaWorld, SESSION_MS } from '../world.ts'
import { onCluster, underLoad } from './load.ts'

const RATE = 500
/** Twice the session: others have long taken over what the process believes to hold. */
const STOPPED_MS = 2 * SESSION_MS
const FAULT = 'a process stands still'

export const stopped: KafkaScenario = onCluster({
  name: 'stopped',
  story:
    'a process stands still past its session, others take over, and it goes on as if nothing had been',
  messages: { quick: 4_000, full: 30_000 },
  async play(world) {
    const times = world.scale === 'full' ? 5 : 1
    const rate = world.scale === 'full' ? RATE : RATE / 2
    // Long enough in the handler that much is in hand when the process stops.
    const fleet = { workMs: 50, policy: { ...POLICY, limit: 'off' } } as const
    const load = { consumers: 3, ratePerSecond: rate, fleet }
    await comeBackAlone(world)
    await underLoad(world, load, async (members) => {
      for (let time = 0; time < times; time++) {
        await lasting(SESSION_MS)
        const member = members.members()[time % 3]
        const end = world.fault(FAULT)
        member?.signal('SIGSTOP')
        await lasting(STOPPED_MS)
        member?.signal('SIGCONT')
        end()
      }
    })
  },
  tell: (evidence) => `${refusedIn(evidence)} commits refused`,
  check: (evidence) => [...checkRefused(evidence), ...checkRejoined(evidence)],
})

/** 20 s: starting takes some, the session takes three. */
const TAKEN_OVER: Deadline = { withinMs: 20_000, everyMs: 250 }
const LEAST = 100

/**
 * The group was somebody else's for a while, and is all its own when it comes back: with what it knew
 * before, it would take back what the other one has finished.
 */
async function comeBackAlone(world: KafkaWorld): Promise<void> {
  const queue = `${world.run}-alone`
  await createTopics(world.broker, [queue], world.partitions)
  const fleet = world.fleet({ queues: [queue], workMs: 50 })
  const first = fleet.start()
  await ready(fleet, 1)
  const produced = world.send(queue, plan(queue, 10 * LEAST, USUAL_MIX), 2 * LEAST)
  await until(`${first.name} has begun`, () => handledBy(world, first) > LEAST, TAKEN_OVER)
  const end = world.fault(FAULT)
  first.signal('SIGSTOP')
  const second = fleet.start()
  await until(`${second.name} has taken over`, () => handledBy(world, second) > LEAST, TAKEN_OVER)
  await second.stop()
  first.signal('SIGCONT')
  end()
  await produced
}

const handledBy = ({ folder }: KafkaWorld, { name }: Member) =>
  readHistory(folder).filter(({ by, what }) => by === name && what === 'effect').length

const refusedIn = ({ entries }: Evidence) =>
  entries.filter((entry) => entry.what === 'commit' && !entry.isAccepted).length

/** Whoever was thrown out must have tried: otherwise nothing was fenced, and nothing proved. */
function checkRefused(evidence: Evidence): readonly Violation[] {
  return refusedIn(evidence) > 0
    ? []
    : [{ rule: 'scenario', text: 'no commit of a stopped process was refused' }]
}

/** A process that was thrown out comes back as somebody else. */
function checkRejoined({ entries }: Evidence): readonly Violation[] {
  const stops = entries.filter(
    (entry) => entry.what === 'fault' && entry.phase === 'begins' && entry.name === FAULT,
  ).length
  const members = new Set(entries.flatMap((one) => (one.what === 'assigned' ? [one.member] : [])))
  const processes = new Set(entries.flatMap((one) => (one.what === 'spawned' ? [one.process] : [])))
  const text = `${members.size - processes.size} of ${stops} stopped processes lost their place and came back`
  return members.size >= processes.size + stops ? [] : [{ rule: 'scenario', text }]
}
