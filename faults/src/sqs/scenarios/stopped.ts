import { STOPPED } from '../../harness/stopped.ts'
import type { SqsScenario } from '../world.ts'

export const stopped: SqsScenario = { ...STOPPED, service: 'elasticmq' }
