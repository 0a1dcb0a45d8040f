import { classify } from '@redrive/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Expectation } from '../src/situation.ts'
import { SITUATIONS } from '../src/table.ts'
import { hide, valueAt } from './hide.ts'
import { openSite, type Provocations, type Provoke, type Site } from './site.ts'

type Verdict = Omit<Expectation, 'by'>

function verdictOf(error: unknown): Verdict {
  const options = { rules: [], handler: 'orders', includeStack: false, now: 0 }
  const { class: failureClass, code, timedOut, retryAfterMs } = classify(error, options)
  return { class: failureClass, code, timedOut, retryAfterMs }
}

/** Provokes each error of these packages and compares its class with the table. */
export function expectSituations(provocations: Provocations): void {
  let site: Site
  beforeAll(() => {
    site = openSite()
  })
  afterAll(() => site.close())

  describe.each(Object.entries(provocations))('%s', (name, situations) => {
    const rows = SITUATIONS[name] ?? {}

    test('has a provocation for each row of the table', () => {
      expect(Object.keys(situations).sort()).toEqual(Object.keys(rows).sort())
    })

    test.each(Object.entries(rows))('%s', async (situation, { by, ...expected }) => {
      const error = await errorOf(situations[situation], site)
      expect(verdictOf(error)).toEqual(expected)
      if (by !== undefined) expectDecidedBy(error, by)
    })
  })
}

async function errorOf(provoke: Provoke | undefined, site: Site): Promise<unknown> {
  const result = await provoke?.(site).then(
    () => undefined,
    (error: unknown) => ({ error }),
  )
  if (result === undefined) throw new Error('The call of the client did not fail.')
  return result.error
}

/** The verdict differs without the property. */
function expectDecidedBy(error: unknown, path: string): void {
  expect(valueAt(error, path)).toBeDefined()
  expect(verdictOf(hide(error, path.split('.').at(-1) ?? ''))).not.toEqual(verdictOf(error))
}
