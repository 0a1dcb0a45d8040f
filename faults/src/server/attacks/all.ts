import type { Drill } from '../../drill.ts'
import { CSRF } from './csrf.ts'
import { XSS } from './xss.ts'
import { SQL } from './sql.ts'
import { CRLF } from './crlf.ts'
import { SSRF } from './ssrf.ts'
import { FIXATION } from './fixation.ts'
import { TOKENS } from './tokens.ts'
import { BOMBS } from './bombs.ts'
import { SLOW } from './slow.ts'
import { DEVELOPMENT } from './development.ts'
import { ELSEWHERE } from './elsewhere.ts'
import { APPROVAL } from './approval.ts'

/** Thousands of statements, large bodies, and clients or plans that wait: too long for `--smoke`. */
const LONG: readonly Drill[] = [SQL, BOMBS, APPROVAL, SLOW]

const ALL: readonly Drill[] = [
  CSRF,
  XSS,
  SQL,
  CRLF,
  SSRF,
  FIXATION,
  DEVELOPMENT,
  TOKENS,
  BOMBS,
  ELSEWHERE,
  APPROVAL,
  SLOW,
]

export const ATTACKS: readonly Drill[] = ALL.map((one) => ({
  ...one,
  isInSmoke: !LONG.includes(one),
}))
