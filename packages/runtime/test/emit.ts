import { FakeClock, recordingDeadLetters, recordingSink, seededRandom } from '@redrive/testing'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { createEmitter, type EmitterOptions, type Sink } from '../src/index.ts'

const DOWN = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

/** A sink that can be told to fail. */
export function moody(options: { readonly batch?: number } = {}) {
  const state: { error: Error | undefined } = { error: undefined }
  const answer = () => {
    if (state.error !== undefined) throw state.error
  }
  return {
    sink: recordingSink({ ...options, onSend: answer, onHealthCheck: answer }),
    fail: (error: Error = DOWN) => {
      state.error = error
    },
    recover: () => {
      state.error = undefined
    },
  }
}

/** An emitter on a fake clock, with a store that records. */
export function world(
  sinks: Readonly<Record<string, Sink>>,
  changes: Partial<EmitterOptions> = {},
) {
  const clock = new FakeClock()
  const store = recordingDeadLetters()
  const emitter = createEmitter({
    sinks,
    store,
    queue: { most: 10_000, whenFull: 'store' },
    clock,
    random: seededRandom(7),
    ...changes,
  })
  return { emitter, store, clock }
}

/** Lets everything that waits for promises only go on. */
export const settled = () =>
  new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))

export const event = (type = 'order.paid', data: unknown = { amount: 1 }) => ({ type, data })

/** `{ amount }`, of which it makes a number. */
export const amounts: StandardSchemaV1<{ amount: unknown }, { amount: number }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate(value) {
      const amount = Number((value as { amount: unknown }).amount)
      return Number.isNaN(amount) ? { issues: [{ message: 'no number' }] } : { value: { amount } }
    },
  },
}
