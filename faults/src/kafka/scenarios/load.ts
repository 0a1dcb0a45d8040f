import type { Fleet } from '../../harness/fleet.ts'
import { type LoadOptions, underLoad as underLoadOf } from '../../harness/load.ts'
import type { Violation } from '../../evidence/evidence.ts'
import { createTopics } from '../broker.ts'
import type { KafkaConsumerOptions } from '../consumer-options.ts'
import { checkLedger } from '../ledger.ts'
import type { KafkaEvidence } from '../server.ts'
import type { KafkaScenario, KafkaWorld } from '../world.ts'

/**
 * A hand-over waits long enough for every handler, also on a busy machine: a record that outlasts it runs twice. Only for
 * scenarios in which no process dies, because the others wait for its session.
 */
export const PATIENT = { sessionMs: 12_000, drainMs: 6_000 } as const

/** Runs the load on a topic that exists before any consumer starts. */
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

/**
 * Creates a scenario on the cluster, or on one broker with `--smoke`. It always checks the commits
 * as well.
 */
export const onCluster = (story: KafkaStory): KafkaScenario => ({
  ...story,
  service: 'kafka-cluster',
  smokeService: 'kafka-restarts',
  check(evidence, world) {
    // `collect` created it.
    const known = evidence as KafkaEvidence
    return [...checkLedger(known.entries, known.commits), ...(story.check?.(known, world) ?? [])]
  },
})
