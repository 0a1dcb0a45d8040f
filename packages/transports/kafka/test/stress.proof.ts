import { STRESS_SCENARIO } from '@redrive/testing'
import { contractOf, WORLDS } from './contract.ts'

for (const world of Object.values(WORLDS)) await contractOf(world, { only: [STRESS_SCENARIO] })
