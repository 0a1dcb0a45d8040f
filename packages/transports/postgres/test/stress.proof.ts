import { STRESS_SCENARIO } from '@redrive/testing'
import { contractOn } from './contract.ts'

for (const [service, name] of [
  ['postgres', 'postgres 15'],
  ['postgres-18', 'postgres 18'],
] as const) {
  await contractOn({ service, name, database: 'redrive_stress', only: [STRESS_SCENARIO] })
}
