import { RESTART_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

for (const order of ['none', 'lane'] as const) {
  await contractOf({ service: 'rabbitmq-restarts', order, only: [RESTART_SCENARIO] })
}
