// Dead letters of one queue, as a source drains them: oldest first, 1 KB each, of 200 kinds.
import { createHash } from 'node:crypto'
import type { DeadLetterSource, DrainedDeadLetter } from '@redrive/runtime'

export const SOURCE = 'orders'
export const GROUPS = 200
const CUSTOMERS = 50_000
const TENANTS = 500
/** About one per second: an hour of them contains every group. */
export const APART_MS = 1_000
const BODY_BYTES = 1_024

/**
 * Returns the group. A few kinds are most of the dead letters, as in production; the first has an
 * eighth of all.
 */
export const groupOf = (number: number): number =>
  Math.floor((GROUPS + 1) ** ((hashOf(number).readUInt32BE() + 0.5) / 2 ** 32)) - 1

const hashOf = (number: number) => createHash('sha256').update(String(number)).digest()

/** Returns a body. Half of it are digits that do not compress, such as ids and signatures. */
export function bodyOf(number: number): Buffer {
  const digits = hashOf(number).toString('hex')
  const lines = [0, 1, 2, 3].map((line) => ({
    sku: `sku-${(number * 7 + line) % 9_999}`,
    quantity: line + 1,
    price: ((number * 31 + line * 17) % 10_000) / 100,
    lot: digits.slice(line * 8, line * 8 + 32),
  }))
  const order = {
    id: `o-${number}`,
    customer: `c-${number % CUSTOMERS}`,
    tenant: `t-${number % TENANTS}`,
    signature: digits + digits.split('').reverse().join(''),
    lines,
    note: '',
  }
  const missing = BODY_BYTES - JSON.stringify({ order }).length
  return Buffer.from(
    JSON.stringify({ order: { ...order, note: 'hold '.repeat(99).slice(0, missing) } }),
  )
}

export function letterOf(
  number: number,
  now: number,
  group: number = groupOf(number),
): DrainedDeadLetter {
  const id = `m-${number}`
  const at = now + number * APART_MS
  return {
    delivery: {
      id,
      source: SOURCE,
      lane: undefined,
      key: id,
      type: 'order.placed',
      bytes: bodyOf(number),
      contentType: 'application/json',
      headers: {
        tenant: `t-${number % TENANTS}`,
        traceparent: `00-${hashOf(-number).toString('hex').slice(0, 32)}-01`,
      },
      cycle: {
        number: 1,
        attempts: 3,
        runs: 3,
        unproven: { runs: 0, waitedMs: 0 },
        firstFailedAt: at,
        history: [1, 2, 3].map((attempt) => ({
          number: attempt,
          at: at + attempt * 10,
          waitedMs: 10,
          class: 'unknown',
          signature: signatureOf(group),
          code: undefined,
          type: 'Error',
          message: messageOf(group, number),
          counted: true,
        })),
        lastDelayMs: 0,
        remainingMs: 0,
      },
      deliveryCount: 1,
      replayId: undefined,
      headerProblems: [],
    },
    origin: SOURCE,
    envelope: { exchange: SOURCE, routingKey: 'order.placed' },
    quarantined: false,
    class: 'unknown',
    reason: 'attempts_exhausted',
    identity: 'stable',
  }
}

/** Returns dead letters that failed at about this time, of the group that a number has. */
export const lettersAt = (
  first: number,
  count: number,
  at: number,
  group: (number: number) => number = groupOf,
): readonly DrainedDeadLetter[] =>
  Array.from({ length: count }, (_, place) => {
    const number = first + place
    return letterOf(number, at - number * APART_MS, group(number))
  })

export const signatureOf = (group: number): string => `1-${String(group).padStart(16, '0')}`
export const messageOf = (group: number, number: number): string =>
  `handler-${group} could not reach host-${number % 17}: gave up after ${number % 1_000} ms`

/**
 * Returns a source with these dead letters that responds immediately, because the broker is not
 * measured here.
 */
export function listed(letters: readonly DrainedDeadLetter[]): DeadLetterSource {
  let at = 0
  const nothing = async () => undefined
  return {
    source: SOURCE,
    replay: 'copy',
    async drain({ limit }) {
      const deadLetters = letters.slice(at, at + limit)
      at += deadLetters.length
      return { deadLetters, release: nothing, abandon: nothing }
    },
    confirmations: async () => ({ confirmations: [], release: nothing, abandon: nothing }),
    publish: nothing,
    depth: async () => letters.length - at,
    close: nothing,
  }
}
