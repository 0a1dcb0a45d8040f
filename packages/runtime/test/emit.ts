import { FakeClock, recordingDeadLetters, recordingSink, seededRandom } from '@redrive/testing'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { createEmitter, type EmitterOptions, type Sink } from '../src/index.ts'

const DOWN = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })

/** A sink that the test can make fail. */
export function failingSink(options: { readonly batch?: number } = {}) {
  const state: { error: Error | undefined } = { error: undefined }
  const respond = () => {
    if (state.error !== undefined) throw state.error
  }
  return {
    sink: recordingSink({ ...options, onSend: respond, onHealthCheck: respond }),
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
    queue: { maxEvents: 10_000, onFull: 'store' },
    clock,
    random: seededRandom(7),
    ...changes,
  })
  return { emitter, store, clock }
}

/** Lets all pending promises continue. */
export const settled = () =>
  new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))

export const event = (type = 'order.paid', data: unknown = { amount: 1 }) => ({ type, data })

/** A schema of `{ amount }` that converts the amount to a number. */
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
