import { withTimeout } from '@redrive/runtime'

/** 30 s: many times a sample; whoever has not finished by then has lost something. */
export const PATIENCE_MS = 30_000

/** Rejects when the work takes longer than any sample can. */
export function patiently<T>(work: Promise<T>, what: () => string): Promise<T> {
  return withTimeout(work, PATIENCE_MS, () => {
    throw new Error(`Still waiting: ${what()}`)
  })
}
