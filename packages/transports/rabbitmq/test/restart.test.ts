import { RESTART_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

await contractOf('rabbitmq-restarts', { only: [RESTART_SCENARIO] })
