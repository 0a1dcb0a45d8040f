import { RESTART_SCENARIO, STRESS_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

await contractOf({
  isFifo: true,
  skip: [
    { scenario: RESTART_SCENARIO, reason: 'it is in restart.test.ts, with a standard queue' },
    { scenario: STRESS_SCENARIO, reason: 'it is in stress.proof.ts, with a standard queue' },
  ],
})
