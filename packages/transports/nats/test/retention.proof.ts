import { RetentionPolicy } from '@nats-io/jetstream'
import { RESTART_SCENARIO, STRESS_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

const skip = [
  { scenario: RESTART_SCENARIO, reason: 'it is in restart.test.ts, which uses another server' },
  {
    scenario: STRESS_SCENARIO,
    reason: 'it is in stress.proof.ts, with the retention of most streams',
  },
]

await contractOf({ retention: RetentionPolicy.Workqueue, skip })
await contractOf({ retention: RetentionPolicy.Interest, skip })
