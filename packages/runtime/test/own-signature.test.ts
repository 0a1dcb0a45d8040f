import type { Delivery } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import type { SignFailure } from '../src/index.ts'
import { events, ofType, world } from './fixtures.ts'

class Declined extends Error {
  readonly acquirer: string
  constructor(acquirer: string) {
    super(`acquirer ${acquirer} declined order ${Math.random()}`)
    this.acquirer = acquirer
  }
}

const TERMINAL = { retry: { attempts: 1 } } as const

/** Lets three messages fail, and returns the signatures of the dead letters and the events. */
async function signed(signature?: SignFailure, name?: string) {
  const { send, start, clock, drain } = world()
  const seen = events()
  await start(
    ({ body }) => {
      throw new Declined(body as string)
    },
    {
      ...TERMINAL,
      ...(signature === undefined ? {} : { signature }),
      ...(name === undefined ? {} : { name }),
    },
  )
  for (const acquirer of ['elavon', 'nets', 'nets']) send(acquirer)
  await clock.settle()
  const signatures = (await drain()).map(({ delivery }) => delivery.cycle.history.at(-1)?.signature)
  return { signatures, failed: ofType(seen, 'user_code_failed') }
}

describe('the signature of a consumer', () => {
  it('replaces the one by the rules, and is marked in the dead letter', async () => {
    const { signatures, failed } = await signed(
      (error) => `declined ${(error as Declined).acquirer}`,
    )
    expect(signatures).toEqual(['own:declined elavon', 'own:declined nets', 'own:declined nets'])
    expect(failed).toEqual([])
  })

  it('gets the delivery, and is separate for each named consumer', async () => {
    const seen: Delivery[] = []
    const sign: SignFailure = (_, delivery) => {
      seen.push(delivery)
      return 'same'
    }
    const { signatures } = await signed(sign, 'ledger')
    expect(signatures).toEqual(['own:ledger:same', 'own:ledger:same', 'own:ledger:same'])
    expect(seen.map(({ source }) => source)).toEqual(['orders', 'orders', 'orders'])
  })

  it('is left to the rules for undefined', async () => {
    const rules = (await signed()).signatures
    const { signatures, failed } = await signed(() => undefined)
    expect(signatures).toEqual(rules)
    expect(signatures[0]).toMatch(/^\d+-/)
    expect(failed).toEqual([])
  })

  it.each<[string, SignFailure, string]>([
    ['throws', () => JSON.parse('{') as string, 'JSON'],
    ['returns too much', () => 'x'.repeat(201), '1 to 200 characters, got 201 characters'],
    ['returns nothing useful', () => ' ', 'got 1 characters'],
    ['returns a number', () => 5 as unknown as string, 'got number'],
    [
      'is async',
      (() => Promise.reject(new Error('late'))) as unknown as SignFailure,
      'must not be async',
    ],
  ])(
    'is left to the rules when the function %s, and the problem is reported',
    async (_, sign, text) => {
      const { signatures, failed } = await signed(sign)
      expect(signatures).toEqual((await signed()).signatures)
      expect(failed).toHaveLength(3)
      expect(failed[0]).toMatchObject({ where: 'signature', source: 'orders' })
      expect(String(failed[0]?.error)).toContain(text)
    },
  )
})
