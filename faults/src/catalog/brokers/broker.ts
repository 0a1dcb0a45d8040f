import type { Kind } from '../options.ts'
import type { Broker } from './parts.ts'

export type { Broker }

/** Hundreds of processes are started, and each needs one of them: the others are not even read. */
const LOADS: Readonly<Record<Kind, () => Promise<{ readonly broker: Broker }>>> = {
  rabbitmq: () => import('./rabbitmq.ts'),
  kafka: () => import('./kafka.ts'),
  postgres: () => import('./postgres.ts'),
}

export const brokerOf = async (kind: Kind): Promise<Broker> => (await LOADS[kind]()).broker
