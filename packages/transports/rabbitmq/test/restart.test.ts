import { RESTART_SCENARIO } from '@redrive/testing'
import { contractOf } from './contract.ts'

await contractOf({ only: [RESTART_SCENARIO] })
