import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { POLICY } from '../../harness/consumer-options.ts'
import { type Member, ready } from '../../harness/fleet.ts'
import { readHistory } from '../../evidence/history.ts'
import { plan, USUAL_MIX } from '../../evidence/message.ts'
import { type Deadline, lasting, until } from '../../harness/wait.ts'
import { createTopics } from '../broker.ts'
import { type KafkaScenario, type KafkaWorld, SESSION_MS } from '../world.ts'
import { onCluster, underLoad } from './load.ts'

const RATE = 500
/** Twice the session: by then others have taken over everything that the process held. */
const STOPPED_MS = 2 * SESSION_MS
const FAULT = 'a process is stopped'

export const stopped: KafkaScenario = onCluster({
  name: 'stopped',
  story:
    'a process is stopped past its session, others take over, then it continues with old state',
  messages: { quick: 4_000, full: 30_000 },
  async play(world) {
    const times = world.scale === 'full' ? 5 : 1
    const rate = world.scale === 'full' ? RATE : RATE / 2
    // The handler is slow enough that many messages are in flight when the process stops.
    const fleet = { workMs: 50, policy: { ...POLICY, adaptiveConcurrency: 'off' } } as const
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
  summarize: (evidence) => `${refusedIn(evidence)} commits rejected`,
  check: (evidence) => [...checkRefused(evidence), ...checkRejoined(evidence)],
})

/** 20 s: a start takes some seconds, the session takes three. */
const TAKEN_OVER: Deadline = { withinMs: 20_000, everyMs: 250 }
const LEAST = 100

/**
 * Another member owned the group for a while, and now the process is alone again. With its old
 * state it would revert what the other member finished.
 */
async function comeBackAlone(world: KafkaWorld): Promise<void> {
  const queue = `${world.run}-alone`
  await createTopics(world.broker, [queue], world.partitions)
  const fleet = world.fleet({ queues: [queue], workMs: 50 })
  const first = fleet.start()
  await ready(fleet, 1)
  const produced = world.send(queue, plan(queue, 10 * LEAST, USUAL_MIX), 2 * LEAST)
  await until(`${first.name} has started`, () => handledBy(world, first) > LEAST, TAKEN_OVER)
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

/**
 * Checks that the removed process tried to commit. Otherwise nothing was fenced, and nothing is
 * proven.
 */
function checkRefused(evidence: Evidence): readonly Violation[] {
  return refusedIn(evidence) > 0
    ? []
    : [{ rule: 'scenario', text: 'no commit of a stopped process was rejected' }]
}

/** Checks that a removed process rejoins as another member. */
function checkRejoined({ entries }: Evidence): readonly Violation[] {
  const stops = entries.filter(
    (entry) => entry.what === 'fault' && entry.phase === 'begins' && entry.name === FAULT,
  ).length
  const members = new Set(entries.flatMap((one) => (one.what === 'assigned' ? [one.member] : [])))
  const processes = new Set(entries.flatMap((one) => (one.what === 'spawned' ? [one.process] : [])))
  const text = `${members.size - processes.size} of ${stops} stopped processes lost their membership and rejoined`
  return members.size >= processes.size + stops ? [] : [{ rule: 'scenario', text }]
}
