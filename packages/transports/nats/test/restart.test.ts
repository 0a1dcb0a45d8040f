import { RESTART_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

await contractOf({ service: 'nats-restarts', only: [RESTART_SCENARIO] })
