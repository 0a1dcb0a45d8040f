import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isRedriveError } from '../src/errors.ts'
import type { PolicyOptions } from '../src/policy/options.ts'
import { readPolicyOptions, resolvePolicy } from '../src/policy/resolve.ts'
import type { Policy } from '../src/policy.ts'

const HOSTILE = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  withObjectString: true,
  withSparseArray: true,
})

const VALUES = fc.oneof(
  HOSTILE,
  fc.constantFrom('off', '5s', '${A}', '${A:-1}', null, undefined, 0, 1, -1, 0.5, Number.NaN),
  fc.constantFrom(() => true, /x/, Symbol('s')),
)

/** Any value under the known names, so that it passes the first check. */
function under(names: readonly string[], value: fc.Arbitrary<unknown>) {
  return fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 6 })
}

const INNER = [
  'attempts',
  'backoff',
  'classes',
  'minDelay',
  'maxAge',
  'maxInlineDelay',
  'history',
  'trip',
  'minOpen',
  'maxOpen',
  'ratio',
  'window',
  'start',
  'min',
  'burst',
  'release',
  'onExceeded',
  'repeats',
  'drop',
  'keep',
  'keepIf',
  'includeStack',
  'retention',
  'kind',
  'tiers',
  'otherwise',
  'delay',
  'jitter',
  'base',
  'cap',
  'class',
  'unknown',
  'transient',
]
const OUTER = [
  'timeout',
  'concurrency',
  'order',
  'retry',
  'classify',
  'breaker',
  'onBreakerOpen',
  'outage',
  'limit',
  'budget',
  'poison',
  'flood',
  'deadLetter',
]
const DEEP = under(INNER, fc.oneof(VALUES, under(INNER, fc.oneof(VALUES, under(INNER, VALUES)))))
const CONFIG = under(OUTER, fc.oneof(VALUES, DEEP, fc.array(DEEP)))

/** Returns the policy, or the problems of a rejected one. Rethrows any other error. */
function outcomeOf(resolve: () => Policy): Policy | readonly string[] {
  try {
    return resolve()
  } catch (error) {
    if (!isRedriveError(error, 'POLICY_INVALID') || error.problems.length === 0) throw error
    return error.problems
  }
}

function expectFrozenOrRefused(resolve: () => Policy): void {
  const outcome = outcomeOf(resolve)
  expect(Array.isArray(outcome) || Object.isFrozen(outcome)).toBe(true)
}

describe('for any input', () => {
  test('a policy resolves or is rejected with POLICY_INVALID', () => {
    fc.assert(
      fc.property(fc.oneof(HOSTILE, CONFIG), (options) => {
        expectFrozenOrRefused(() => resolvePolicy(options as PolicyOptions))
        expectFrozenOrRefused(() => resolvePolicy(options as PolicyOptions, 'sink'))
      }),
      { numRuns: 500 },
    )
  })

  test('a configuration is read or rejected the same way', () => {
    fc.assert(
      fc.property(
        fc.oneof(HOSTILE, CONFIG),
        fc.dictionary(fc.constantFrom('A', 'B'), fc.string()),
        (config, env) => {
          expectFrozenOrRefused(() => resolvePolicy(readPolicyOptions(config, { env })))
        },
      ),
      { numRuns: 500 },
    )
  })

  test('the same options give an equal policy every time', () => {
    fc.assert(
      fc.property(CONFIG, (options) => {
        const outcome = () => outcomeOf(() => resolvePolicy(options as PolicyOptions))
        expect(outcome()).toEqual(outcome())
      }),
    )
  })
})
