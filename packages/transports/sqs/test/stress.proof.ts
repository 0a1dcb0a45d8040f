import { STRESS_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

await contractOf({ only: [STRESS_SCENARIO] })
