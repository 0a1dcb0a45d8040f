import { STRESS_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

await contractOf('rabbitmq', { only: [STRESS_SCENARIO] })
