import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { type JsonPolicy, POLICY } from '../../harness/consumer-options.ts'
import type { Member } from '../../harness/fleet.ts'
import { type Entry, readHistory } from '../../evidence/history.ts'
import { underLoad } from '../../harness/load.ts'
import { becomesTrue, type Deadline, lasting, until } from '../../harness/wait.ts'
import type { Failpoint } from '../consumer-options.ts'
import { LEASE_MS, type PostgresScenario, type PostgresWorld } from '../world.ts'

const RATE = 250
/** Twice the lease: by then others have taken over everything that the process held. */
const STOPPED_MS = 2 * LEASE_MS

export const stopped: PostgresScenario = {
  name: 'stopped',
  story: 'a process is stopped past its lease, others take over, then it continues with old state',
  service: 'postgres',
  messages: { quick: 1_500, full: 9_000 },
  async play(world) {
    const times = world.scale === 'full' ? 5 : 1
    // The handler is slow enough that many messages are in flight when the process stops.
    const fleet = { workMs: 100, policy: { ...POLICY, adaptiveConcurrency: 'off' } } as const
    const load = { consumers: 3, ratePerSecond: RATE, fleet }
    await Promise.all(STALE.map((query, index) => answerStale(world, query, index)))
    await underLoad(world, load, async (members) => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const member = members.members()[time % 3]
        const end = world.fault('a process is stopped', member?.inFlight)
        member?.signal('SIGSTOP')
        await lasting(STOPPED_MS)
        member?.signal('SIGCONT')
        end()
      }
    })
  },
  summarize: (evidence) => `${fencedIn(evidence)} updates fenced`,
  check: (evidence) => [
    ...(fencedIn(evidence) > 0
      ? []
      : [{ rule: 'scenario', text: 'no update was fenced' } as const]),
    ...checkOwners(evidence),
  ],
}

const isFenced = (entry: Entry) => entry.what === 'event' && entry.type === 'lost'

/** Counts updates of a process that no longer owned the row and got that result. */
const fencedIn = ({ entries }: Evidence) => entries.filter(isFenced).length

/**
 * Checks two owners: the first gets the result that it lost the message, the second that it is
 * done.
 */
function checkOwners({ entries }: Evidence): readonly Violation[] {
  const owners = entries.filter((entry) => entry.what === 'owners')
  return owners.flatMap(({ first, second }) => {
    const wasFenced = entries.some((entry) => entry.by === first && isFenced(entry))
    const isDone = entries.some(({ by, what }) => by === second && what === 'settled')
    if (wasFenced && isDone) return []
    const text = `${first} was ${wasFenced ? '' : 'not '}fenced, ${second} ${isDone ? 'got' : 'did not get'} the confirmation that it is done`
    return [{ rule: 'not fenced', text }]
  })
}

/** Queries of the first owner while the second one has the message in flight. */
const STALE = ['complete', 'hand-off retry'] as const
const ONE_BY_ONE: JsonPolicy = { ...POLICY, concurrency: 1 }
/** One minute: more than the response to the first owner may take. */
const SECOND_LEASE_MS = 60_000
/** 20 s: a start takes some seconds, the lease takes two. */
const REACHED: Deadline = { withinMs: 20_000 }
/** 3 s: far more than any response takes. */
const ANSWERED: Deadline = { withinMs: 3_000 }

/**
 * Creates two owners at the same time. The first is stopped before it reports the outcome, then the
 * second takes over and is stopped as well. Then the first continues.
 */
async function answerStale(
  world: PostgresWorld,
  query: (typeof STALE)[number],
  index: number,
): Promise<void> {
  const queue = `${world.run}-stale-${index}`
  await world.send(queue, [{ id: `${queue}/0`, kind: query === 'complete' ? 'good' : 'outage' }])
  const fleet = world.fleet({ queues: [queue], policy: ONE_BY_ONE, workMs: 0 })
  const end = world.fault('a message has two owners', 1)
  const stopBefore = (at: string): Failpoint => ({ query: at, when: 'before', what: 'stop' })
  const first = fleet.start({ isDependencyDown: true, failpoint: stopBefore(query) })
  await until(`${first.name} is stopped`, () => isStopped(world, first), REACHED)
  // It keeps the message while it is stopped, however long that is.
  const second = fleet.start({ lease: SECOND_LEASE_MS, failpoint: stopBefore('complete') })
  await until(`${second.name} is stopped`, () => isStopped(world, second), REACHED)
  world.history.write({ what: 'owners', first: first.name, second: second.name })
  first.signal('SIGCONT')
  // The checker decides whether the response was correct.
  await becomesTrue(() => isAnswered(world, first), ANSWERED)
  second.signal('SIGCONT')
  await becomesTrue(() => isAnswered(world, second), ANSWERED)
  end()
}

const entriesBy = ({ folder }: PostgresWorld, { name }: Member) =>
  readHistory(folder).filter(({ by }) => by === name)

const isStopped = (world: PostgresWorld, member: Member) =>
  entriesBy(world, member).some(({ what }) => what === 'stops')

const isAnswered = (world: PostgresWorld, member: Member) =>
  entriesBy(world, member).some((entry) => entry.what === 'settled' || isFenced(entry))
