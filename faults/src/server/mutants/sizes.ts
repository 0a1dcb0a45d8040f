import type { Mutant } from '../../harness/mutant.ts'
import { weakened } from './weakened.ts'

const APP = 'packages/server/src/http/app.ts'
const JSON_BODY = 'packages/server/src/http/json.ts'
const LIMITS = 'packages/server/src/http/limits.ts'
const REQUESTS = 'packages/api/src/requests.ts'

/** Requests that are large or slow. */
export const SIZES: readonly Mutant[] = [
  weakened(
    'bombs',
    'bodies have no size limit',
    [LIMITS, 'export const BODY_BYTES = 1_048_576', 'export const BODY_BYTES = 1_073_741_824'],
    ['packages/server/src/config/schema.ts', '.default(1_048_576)', '.default(1_073_741_824)'],
    [LIMITS, 'PLAN_BYTES: number = 12 * 1_048_576', 'PLAN_BYTES: number = 1_073_741_824'],
  ),
  weakened('bombs', 'JSON has no depth limit', [
    JSON_BODY,
    'if (isDeeper(body, DEPTH_MAX))',
    'if (isDeeper(body, Infinity * DEPTH_MAX))',
  ]),
  weakened(
    'bombs',
    'an address has only the limit of headers',
    [LIMITS, 'export const URL_MAX = 8_192', 'export const URL_MAX = 1_000_000'],
    [REQUESTS, 'const name = z.string().min(1).max(500)', 'const name = z.string().min(1)'],
    ['packages/catalog/src/read/check.ts', 'const TEXT_MAX = 512', 'const TEXT_MAX = 1_000_000'],
  ),
  weakened('bombs', 'a list of known values has no limit', [
    REQUESTS,
    'z.array(values).max(values.options.length)',
    'z.array(values).max(values.options.length * 1_000_000)',
  ]),
  weakened('downloads', 'a body is read as a whole before it is sent', [
    'packages/server/src/operations/dead-letters.ts',
    'new PiecewiseOutput(fields, found.pieces,',
    'new PiecewiseOutput(fields, ((all) => async function* () { yield Buffer.concat(await all) })(Array.fromAsync(found.pieces())),',
  ]),
  weakened('slow', 'a request may take forever to arrive', [
    APP,
    'requestTimeout: ARRIVAL_MS,',
    'requestTimeout: 0 * ARRIVAL_MS,',
  ]),
]
