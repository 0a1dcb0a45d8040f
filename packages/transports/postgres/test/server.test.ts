import { contractOn } from './contract.ts'
import { suitesOn } from './suites.ts'

// One file for everything on this server: the contract crashes it, and files run at the same time.
await suitesOn('postgres')
await contractOn('postgres', 'postgres 15')
