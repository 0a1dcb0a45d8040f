import { RESTART_SCENARIO } from '@redrive/testing'
import { contractOn } from './contract.ts'

// Every response of this server is on disk, so a crash loses nothing.
await contractOn({ service: 'redis-restarts', only: [RESTART_SCENARIO] })
