import type { Evidence, Violation } from '../../evidence.ts'
import { type JsonPolicy, POLICY } from '../../consumer-options.ts'
import type { Member } from '../../fleet.ts'
import { type Entry, readHistory } from '../../history.ts'
import { underLoad } from '../../load.ts'
import { becomesTrue, type Deadline, lasting, until } from '../../wait.ts'
import type { Failpoint } from '../consumer-options.ts'
import { LEASE_MS, type PostgresScenario, type PostgresWorld } from '../world.ts'

const RATE = 250
/** Twice the lease: others have long taken over what the process believes to hold. */
const STOPPED_MS = 2 * LEASE_MS

export const stopped: PostgresScenario = {
  name: 'stopped',
  story:
    'a process stands still past its lease, others take over, and it goes on as if nothing had been',
  service: 'postgres',
  messages: { quick: 1_500, full: 9_000 },
  async play(world) {
    const times = world.scale === 'full' ? 5 : 1
    // Long enough in the handler that much is in hand when the process stops.
    const fleet = { workMs: 100, policy: { ...POLICY, limit: 'off' } } as const
    const load = { consumers: 3, ratePerSecond: RATE, fleet }
    await Promise.all(STALE.map((query, index) => answerStale(world, query, index)))
    await underLoad(world, load, async (members) => {
      for (let time = 0; time < times; time++) {
        await lasting(1_000)
        const member = members.members()[time % 3]
        const end = world.fault('a process stands still', member?.inFlight)
        member?.signal('SIGSTOP')
        await lasting(STOPPED_MS)
        member?.signal('SIGCONT')
        end()
      }
    })
  },
  tell: (evidence) => `${fencedIn(evidence)} updates fenced`,
  check: (evidence) => [
    ...(fencedIn(evidence) > 0
      ? []
      : [{ rule: 'scenario', text: 'no update was fenced' } as const]),
    ...checkOwners(evidence),
  ],
}

const isFenced = (entry: Entry) => entry.what === 'event' && entry.type === 'lost'

/** Updates of a process that did not own the row any more, and was told so. */
const fencedIn = ({ entries }: Evidence) => entries.filter(isFenced).length

/** Of two owners the first is told that it is one no longer, and the second that it is done. */
function checkOwners({ entries }: Evidence): readonly Violation[] {
  const owners = entries.filter((entry) => entry.what === 'owners')
  return owners.flatMap(({ first, second }) => {
    const wasFenced = entries.some((entry) => entry.by === first && isFenced(entry))
    const isDone = entries.some(({ by, what }) => by === second && what === 'settled')
    if (wasFenced && isDone) return []
    const text = `${first} was ${wasFenced ? '' : 'not '}fenced, ${second} was ${isDone ? '' : 'not '}told that it is done`
    return [{ rule: 'not fenced', text }]
  })
}

/** What the first owner sends although the second one has the message in hand. */
const STALE = ['complete', 'hand-off retry'] as const
const ONE_BY_ONE: JsonPolicy = { ...POLICY, concurrency: 1 }
/** A minute: more than the first may take to be answered. */
const SECOND_LEASE_MS = 60_000
/** 20 s: starting takes some, the lease takes two. */
const REACHED: Deadline = { withinMs: 20_000 }
/** 3 s: far beyond any answer. */
const ANSWERED: Deadline = { withinMs: 3_000 }

/**
 * Two owners at the same moment: the first stands still before it tells the server what became of the
 * message, the second takes over and stands still before it does; then the first goes on.
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
  await until(`${first.name} stands still`, () => isStopped(world, first), REACHED)
  // It keeps the message while it stands still, however long that is.
  const second = fleet.start({ lease: SECOND_LEASE_MS, failpoint: stopBefore('complete') })
  await until(`${second.name} stands still`, () => isStopped(world, second), REACHED)
  world.history.write({ what: 'owners', first: first.name, second: second.name })
  first.signal('SIGCONT')
  // Whether it was told the truth is the checker's to say.
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
