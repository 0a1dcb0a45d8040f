import type { Fleet } from '../../fleet.ts'
import { type LoadOptions, underLoad as underLoadOf } from '../../load.ts'
import type { Violation } from '../../evidence.ts'
import { createTopics } from '../broker.ts'
import type { KafkaConsumerOptions } from '../consumer-options.ts'
import { checkLedger } from '../ledger.ts'
import type { KafkaEvidence } from '../server.ts'
import type { KafkaScenario, KafkaWorld } from '../world.ts'

/** On a topic that is there before anybody consumes. */
export async function underLoad(
  world: KafkaWorld,
  load: LoadOptions<KafkaConsumerOptions>,
  faults: (fleet: Fleet<KafkaConsumerOptions>) => Promise<void>,
): Promise<void> {
  await createSource(world)
  await underLoadOf(world, load, faults)
}

export const createSource = ({ broker, run, partitions }: KafkaWorld): Promise<void> =>
  createTopics(broker, [run], partitions)

export type KafkaStory = Omit<KafkaScenario, 'service' | 'smokeService' | 'check'> & {
  check?(evidence: KafkaEvidence, world: KafkaWorld): readonly Violation[]
}

/** On the cluster, with `--smoke` on one broker; what consumers told their group is always looked at, too. */
export const onCluster = (story: KafkaStory): KafkaScenario => ({
  ...story,
  service: 'kafka-cluster',
  smokeService: 'kafka',
  check(evidence, world) {
    // `collect` made it.
    const known = evidence as KafkaEvidence
    return [...checkLedger(known.entries, known.commits), ...(story.check?.(known, world) ?? [])]
  },
})
