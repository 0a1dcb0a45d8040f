import { RESTART_SCENARIO } from '@redrive/testing'
import { contractOn } from './contract.ts'

await contractOn({
  service: 'postgres-restarts',
  name: 'postgres 15',
  database: 'redrive_restart',
  only: [RESTART_SCENARIO],
})
