import { DiscardPolicy } from '@nats-io/jetstream'
import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { underLoad } from '../../harness/load.ts'
import { lasting } from '../../harness/wait.ts'
import { changeStream, CONSUMER } from '../broker.ts'
import type { NatsScenario } from '../world.ts'

const RATE = 200
const FULL_MS = 4_000
/** Small enough that both streams are full at the same time. */
const MOST = 3
const UNLIMITED = -1

export const fullStream: NatsScenario = {
  name: 'full-stream',
  story:
    'the streams of producers and of dead letters are full and reject messages; hand-offs wait and succeed later',
  service: 'nats-restarts',
  messages: { smoke: 1_200, quick: 1_500, full: 8_000 },
  async play(world) {
    const dead = `${world.run}-${CONSUMER}-dlq`
    const limit = async (stream: string, count: number) =>
      changeStream(world.broker, stream, { max_msgs: count, discard: DiscardPolicy.New })
    await underLoad(world, { consumers: 2, ratePerSecond: RATE }, async () => {
      await lasting(1_000)
      const end = world.fault('the streams are full')
      await limit(dead, MOST)
      await limit(world.run, MOST)
      await lasting(FULL_MS)
      await limit(world.run, UNLIMITED)
      await limit(dead, UNLIMITED)
      end()
    })
  },
  check: checkRefused,
}

/** Checks that copies and messages were rejected; otherwise the scenario proves nothing. */
function checkRefused({ entries }: Evidence): readonly Violation[] {
  const wereCopies = entries.some((entry) => entry.what === 'event' && entry.type === 'refused')
  const wereMessages = entries.some(({ what }) => what === 'refused')
  return [
    ...(wereCopies ? [] : [{ rule: 'scenario', text: 'no copy was rejected' } as const]),
    ...(wereMessages ? [] : [{ rule: 'scenario', text: 'no message was rejected' } as const]),
  ]
}
