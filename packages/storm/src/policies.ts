import { exponential, fixed, type PolicyOptions } from '@redrive/core'

export interface NamedPolicy {
  readonly name: string
  readonly title: string
  readonly policy: PolicyOptions
}

const NOTHING: PolicyOptions = {
  breaker: 'off',
  outage: 'off',
  adaptiveConcurrency: 'off',
  retryBudget: 'off',
  poison: 'off',
  flood: 'off',
}

const FULL_JITTER: PolicyOptions = {
  ...NOTHING,
  retry: { attempts: 8, backoff: exponential({ base: '1s', cap: '60s', jitter: 'full' }) },
}

/** Common policies of textbooks and libraries, as Redrive options. The runtime is the same. */
export const TEXTBOOK: readonly NamedPolicy[] = [
  {
    name: 'A',
    title: '3 immediate attempts',
    policy: { ...NOTHING, retry: { attempts: 3, backoff: fixed('1ms'), minDelay: '1ms' } },
  },
  {
    name: 'B',
    title: 'exponential 1…16 s, no jitter, 6 attempts',
    policy: {
      ...NOTHING,
      retry: { attempts: 6, backoff: exponential({ base: '1s', cap: '16s', jitter: 'none' }) },
    },
  },
  { name: 'C', title: 'full jitter 1…60 s, 8 attempts', policy: FULL_JITTER },
  {
    name: 'D',
    title: 'C with a retry budget of 10 %',
    policy: { ...FULL_JITTER, retryBudget: {} },
  },
  {
    name: 'E',
    title: 'C with a breaker that pauses 30 s',
    policy: { ...FULL_JITTER, breaker: { minOpen: '30s', maxOpen: '30s' } },
  },
  { name: 'Redrive', title: 'the default policy', policy: {} },
]
