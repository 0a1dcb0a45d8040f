import { STRESS_SCENARIO } from '@redrive/testing'
import { contractOn } from './contract.ts'

await contractOn({ service: 'redis', only: [STRESS_SCENARIO] })
