import type { Subject } from '../harness/play.ts'
import { ATTACKS } from './attacks/all.ts'
import { endTarget } from './attacks/target.ts'
import { MUTANTS } from './mutants.ts'
import { REPLICAS } from './replicas.ts'

export const SERVER: Subject = {
  name: 'server',
  scenarios: [REPLICAS, ...ATTACKS],
  mutants: MUTANTS,
  services: ['postgres', 'rabbitmq', 'kafka'],
  end: endTarget,
}
