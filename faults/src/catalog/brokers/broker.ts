import type { Kind } from '../options.ts'
import type { Broker } from './parts.ts'

export type { Broker }

/**
 * Loads a broker module only when it is needed. Hundreds of processes start, and each needs one
 * broker.
 */
const LOADS: Readonly<Record<Kind, () => Promise<{ readonly broker: Broker }>>> = {
  rabbitmq: () => import('./rabbitmq.ts'),
  kafka: () => import('./kafka.ts'),
  postgres: () => import('./postgres.ts'),
}

export const brokerOf = async (kind: Kind): Promise<Broker> => (await LOADS[kind]()).broker
