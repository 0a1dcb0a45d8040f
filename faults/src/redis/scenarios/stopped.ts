import { STOPPED } from '../../harness/stopped.ts'
import type { RedisScenario } from '../world.ts'

export const stopped: RedisScenario = { ...STOPPED, service: 'redis-restarts' }
