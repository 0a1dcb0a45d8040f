import type { Sink } from '@redrive/runtime'

/** A sink that never responds. */
export const down: Sink = {
  name: 'down',
  batch: 1,
  send: () => Promise.reject(Object.assign(new Error('down'), { code: 'ECONNREFUSED' })),
  healthCheck: () => Promise.reject(new Error('down')),
  close: () => Promise.resolve(),
}
