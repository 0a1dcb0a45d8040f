import type { Member } from '../../harness/fleet.ts'
import { readHistory } from '../../evidence/history.ts'
import { lasting, until } from '../../harness/wait.ts'
import { setBroker } from '../cluster.ts'
import type { RabbitScenario, RabbitWorld } from '../world.ts'
import { underLoad } from './load.ts'

const RATE = 300
/** 5 s instead of half an hour, checked every second instead of every minute. */
const TIMEOUT_MS = 5_000
const TICK_MS = 1_000
const USUAL_TIMEOUT_MS = 1_800_000
const USUAL_TICK_MS = 60_000

/** Longer than the broker's consumer timeout, and longer than its heartbeat timeout (10 s, twice). */
const PAST_TIMEOUT_MS = 9_000
const PAST_HEARTBEAT_MS = 27_000

export const stopPastTimeout: RabbitScenario = {
  name: 'stop-past-timeout',
  story:
    'one process is stopped past the consumer timeout, one past the heartbeat; both continue with old state',
  service: 'rabbitmq-cluster',
  messages: { quick: 1_500, full: 9_000 },
  async play(world) {
    await setBroker('consumer_timeout', TIMEOUT_MS)
    await setBroker('channel_tick_interval', TICK_MS)
    world.atEnd(() => setBroker('consumer_timeout', USUAL_TIMEOUT_MS))
    world.atEnd(() => setBroker('channel_tick_interval', USUAL_TICK_MS))
    // The handler is slow enough that many messages are in flight when the process stops.
    const fleet = { workMs: 50 }
    await underLoad(world, { consumers: 3, ratePerSecond: RATE, fleet }, async (fleet) => {
      await lasting(2_000)
      const [first, second] = fleet.members()
      if (first === undefined || second === undefined)
        throw new Error('Two consumers are needed, but fewer are running.')
      const end = world.fault('processes are stopped')
      await stopAtWork(world, first)
      await stopAtWork(world, second)
      await lasting(PAST_TIMEOUT_MS)
      first.signal('SIGCONT')
      await lasting(PAST_HEARTBEAT_MS - PAST_TIMEOUT_MS)
      second.signal('SIGCONT')
      end()
    })
  },
  check({ entries }) {
    const lost = entries.filter(
      (entry) => entry.what === 'event' && entry.type === 'connection_lost',
    )
    const who = new Set(lost.map(({ by }) => by))
    return who.size >= 2
      ? []
      : [{ rule: 'scenario', text: `${who.size} of 2 stopped processes had lost their deliveries` }]
  },
}

/**
 * Stops a consumer that has messages in flight. A consumer on trial pauses for a short time and
 * then has nothing to lose.
 */
async function stopAtWork({ folder }: RabbitWorld, member: Member): Promise<void> {
  const isCaught = () => {
    member.signal('SIGSTOP')
    const own = readHistory(folder).filter(({ by }) => by === member.name)
    const count = (...whats: readonly string[]) =>
      own.filter(({ what }) => whats.includes(what)).length
    const isAtWork = count('handler_started') > count('effect', 'failed')
    if (!isAtWork) member.signal('SIGCONT')
    return isAtWork
  }
  await until(`${member.name} is at work`, isCaught, { withinMs: 3_000, everyMs: 20 })
}
