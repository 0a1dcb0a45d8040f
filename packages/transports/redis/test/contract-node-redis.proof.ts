import { RESTART_SCENARIO, STRESS_SCENARIO } from '@redrive/testing'
import { contractOn } from './contract.ts'

await contractOn({
  service: 'redis',
  library: '@redis/client',
  skip: [
    { scenario: RESTART_SCENARIO, reason: 'it is in restart.test.ts, which runs last' },
    { scenario: STRESS_SCENARIO, reason: 'it is in stress.proof.ts, which runs every night' },
  ],
})
