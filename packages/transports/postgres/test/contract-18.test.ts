import { STRESS_SCENARIO } from '@redrive/testing'
import { contractOn } from './contract.ts'

// No other test uses this server, so that it may restart here.
await contractOn({
  service: 'postgres-18',
  name: 'postgres 18',
  database: 'redrive_contract',
  skip: [{ scenario: STRESS_SCENARIO, reason: 'it is in stress.proof.ts, which runs every night' }],
})
