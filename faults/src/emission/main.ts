import type { Subject } from '../harness/play.ts'
import { bursts } from './bursts.ts'
import { beforeSend, signals } from './endings.ts'
import { jobs } from './jobs.ts'
import { kills } from './kills.ts'
import { MUTANTS } from './mutants.ts'
import { outage } from './outage.ts'
import { rateLimit } from './rate-limit.ts'

export const EMISSION: Subject = {
  name: 'emission',
  scenarios: [outage, kills, rateLimit, jobs, bursts, beforeSend, signals],
  mutants: MUTANTS,
  services: [],
}
