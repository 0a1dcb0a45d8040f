import { RESTART_SCENARIO, STRESS_SCENARIO } from '@redrive/testing'
import { contractOn } from './contract.ts'

await contractOn({
  service: 'postgres',
  name: 'postgres 15',
  database: 'redrive_contract',
  // A reserved word, so that a name without quotes fails. The default schema is in contract-18.test.ts.
  schema: 'order',
  skip: [
    { scenario: RESTART_SCENARIO, reason: 'it is in restart.test.ts, which runs last' },
    { scenario: STRESS_SCENARIO, reason: 'it is in stress.proof.ts, which runs every night' },
  ],
})
