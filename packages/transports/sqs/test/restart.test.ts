import { RESTART_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

await contractOf({ service: 'elasticmq-restarts', only: [RESTART_SCENARIO] })
