import { plan, USUAL_MIX } from '../../evidence/message.ts'
import { addPartitions } from '../broker.ts'
import type { KafkaScenario } from '../world.ts'
import { onCluster, underLoad } from './load.ts'

const RATE = 250
const BEFORE = 3
const AFTER = 12

export const partitionsAdded: KafkaScenario = onCluster({
  name: 'partitions-added',
  story: 'a topic with 3 partitions gets 12 under load, and producers use all of them immediately',
  messages: { quick: 2_000, full: 20_000 },
  partitions: BEFORE,
  async play(world) {
    const { run, broker } = world
    const messages = world.messages / 2
    await underLoad(world, { consumers: 3, ratePerSecond: RATE, messages }, async () => {
      const end = world.fault('9 partitions are added')
      await addPartitions(broker, run, AFTER)
      world.usePartitions(AFTER)
      await world.send(run, plan(`${run}/later`, messages, USUAL_MIX), RATE)
      end()
    })
  },
  check({ entries }, { run }) {
    const read = new Set(
      entries.flatMap((one) =>
        one.what === 'delivered' && one.position.startsWith(`${run}/`)
          ? [one.position.split('/')[1]]
          : [],
      ),
    )
    if (read.size === AFTER) return []
    return [{ rule: 'scenario', text: `only ${read.size} of ${AFTER} partitions were read` }]
  },
})
