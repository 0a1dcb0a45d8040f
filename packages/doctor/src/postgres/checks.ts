import { type Check, unreadableCheck } from '../finding.ts'
import { SERVER_CHECKS } from './checks-server.ts'
import { TABLE_CHECKS } from './checks-tables.ts'
import type { PostgresFacts } from './facts.ts'

/** All checks of PostgreSQL. */
export const POSTGRES_CHECKS: readonly Check<PostgresFacts>[] = [
  unreadableCheck('postgres'),
  ...SERVER_CHECKS,
  ...TABLE_CHECKS,
]
