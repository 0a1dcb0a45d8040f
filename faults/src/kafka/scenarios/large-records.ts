import type { KafkaScenario } from '../world.ts'
import { onCluster, underLoad } from './load.ts'

const RATE = 200
/** One of a hundred messages. */
const MIX = { large: 1 }

export const largeRecords: KafkaScenario = onCluster({
  name: 'large-records',
  story: 'one record of a hundred is almost as large as its topic allows, and always fails',
  messages: { smoke: 300, quick: 1_000, full: 5_000 },
  async play(world) {
    await underLoad(world, { consumers: 2, ratePerSecond: RATE, mix: MIX }, () => Promise.resolve())
  },
  summarize: ({ found }) => `${found.filter(({ place }) => place === 'dlq').length} dead letters`,
})
