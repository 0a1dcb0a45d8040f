import { contractOn } from './contract.ts'

await contractOn('postgres-18', 'postgres 18')
