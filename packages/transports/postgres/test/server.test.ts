import { contractOn } from './contract.ts'

// One file for everything on this server: the contract crashes it, and files run at the same time.
await contractOn('postgres', 'postgres 15')
