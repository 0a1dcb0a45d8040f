import { RESTART_SCENARIO } from '@redrive/testing'
import { contractOf, WORLDS } from './contract.ts'

/** The JVM of a killed broker needs half a minute to start on a machine that is busy with other tests. */
const deadline = '120s'

for (const world of Object.values(WORLDS)) {
  await contractOf(world, { service: 'kafka-restarts', only: [RESTART_SCENARIO], deadline })
}
