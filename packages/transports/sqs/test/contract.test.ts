import { RESTART_SCENARIO, STRESS_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

await contractOf({
  skip: [
    { scenario: RESTART_SCENARIO, reason: 'it is in restart.test.ts, which uses another server' },
    { scenario: STRESS_SCENARIO, reason: 'it is in stress.proof.ts, which runs every night' },
  ],
})
