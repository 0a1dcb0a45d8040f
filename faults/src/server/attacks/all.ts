import type { Scenario } from '../../harness/scenario.ts'
import { CSRF } from './csrf.ts'
import { XSS } from './xss.ts'
import { SQL } from './sql.ts'
import { CRLF } from './crlf.ts'
import { SSRF } from './ssrf.ts'
import { FIXATION } from './fixation.ts'
import { FORGED } from './forged.ts'
import { MASKS } from './masks.ts'
import { TOKENS } from './tokens.ts'
import { BOMBS } from './bombs.ts'
import { DOWNLOADS } from './downloads.ts'
import { SLOW } from './slow.ts'
import { DEVELOPMENT } from './development.ts'
import { ELSEWHERE } from './foreign-origin.ts'
import { APPROVAL } from './approval.ts'
import { GROUPS } from './groups.ts'
import { MCP } from './mcp.ts'
import { SMUGGLING } from './smuggling.ts'

/**
 * These scenarios take too long for `--smoke`: thousands of statements, large bodies, and clients
 * or plans that wait.
 */
const LONG: readonly Scenario[] = [
  SQL,
  BOMBS,
  DOWNLOADS,
  APPROVAL,
  SLOW,
  FORGED,
  GROUPS,
  MCP,
  SMUGGLING,
]

const ALL: readonly Scenario[] = [
  CSRF,
  XSS,
  SQL,
  CRLF,
  SSRF,
  FIXATION,
  DEVELOPMENT,
  TOKENS,
  BOMBS,
  DOWNLOADS,
  ELSEWHERE,
  APPROVAL,
  MASKS,
  FORGED,
  GROUPS,
  MCP,
  SMUGGLING,
  SLOW,
]

export const ATTACKS: readonly Scenario[] = ALL.map((one) => ({
  ...one,
  isInSmoke: !LONG.includes(one),
}))
