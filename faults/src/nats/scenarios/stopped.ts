import { STOPPED } from '../../harness/stopped.ts'
import type { NatsScenario } from '../world.ts'

export const stopped: NatsScenario = { ...STOPPED, service: 'nats-restarts' }
