import { withTimeout } from '@redrive/runtime/internal'

/** 30 s: many times a sample. A candidate that has not finished by then has lost a message. */
export const PATIENCE_MS = 30_000

/** Rejects when the work takes longer than any sample can. */
export function patiently<T>(work: Promise<T>, what: () => string): Promise<T> {
  return withTimeout(work, PATIENCE_MS, () => {
    throw new Error(`Timed out: ${what()}`)
  })
}
