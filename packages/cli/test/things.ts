import type { Output, DeadLetter, DeadLetterDetail, Group, Run } from '@redrive/api'
import { NOW } from './world.ts'

const MINUTE = 60_000

export const GROUP_A = '7f3a0000-0000-5000-8000-000000000001'
export const GROUP_B = 'c01d0000-0000-5000-8000-000000000002'
export const MESSAGE_A = '019c1000-0000-7000-8000-000000000001'
export const MESSAGE_B = '019c1000-0000-7000-8000-000000000002'
export const RUN_A = '0a5e0000-0000-7000-8000-000000000001'

export const group = (over: Partial<Group> = {}): Group => ({
  id: GROUP_A,
  source: 'orders',
  handler: 'billing',
  signature: '2-0123456789abcdef',
  signatureFrom: 'rules',
  algorithm: 2,
  class: 'transient',
  code: 'ECONNREFUSED',
  title: 'connect ECONNREFUSED payments-api',
  sample: 'connect ECONNREFUSED payments-api:443',
  state: 'open',
  regressed: false,
  firstSeenAt: NOW - 23 * MINUTE,
  lastSeenAt: NOW - 6 * MINUTE,
  count: 38_112,
  openCount: 38_112,
  replayingCount: 0,
  undecidedCount: 0,
  attempts: 304_896,
  mergedCount: 0,
  ...over,
})

export const groups = (): Group[] => [
  group(),
  group({
    id: GROUP_B,
    source: 'users',
    class: 'schema',
    code: undefined,
    title: 'email: invalid format at /contact/email',
    count: 1_204,
    openCount: 1_200,
    firstSeenAt: NOW - 112 * MINUTE,
    regressed: true,
  }),
]

export const deadLetter = (over: Partial<DeadLetter> = {}): DeadLetter => ({
  id: MESSAGE_A,
  group: GROUP_A,
  source: 'orders',
  handler: 'billing',
  status: 'open',
  quarantined: false,
  class: 'transient',
  reason: 'attempts_exhausted',
  code: 'ECONNREFUSED',
  message: 'connect ECONNREFUSED payments-api:443',
  type: 'order.placed',
  messageId: 'm-1',
  key: 'order-1001',
  origin: 'orders',
  contentType: 'application/json',
  attempts: 5,
  runs: 8,
  cycle: 1,
  version: 1,
  payloadBytes: 2_048,
  isTombstone: false,
  headers: { tenant: 'acme', 'x-retry': 3 },
  history: [
    {
      number: 7,
      at: NOW - 8 * MINUTE,
      waitedMs: 20_000,
      class: 'transient',
      signature: 's',
      code: 'ETIMEDOUT',
      type: 'Error',
      message: 'timed out',
      counted: false,
    },
    {
      number: 8,
      at: NOW - 6 * MINUTE,
      waitedMs: 95_000,
      class: 'transient',
      signature: 's',
      code: 'ECONNREFUSED',
      type: 'Error',
      counted: true,
      message: 'connect ECONNREFUSED payments-api:443',
    },
  ],
  firstFailedAt: NOW - 23 * MINUTE,
  lastFailedAt: NOW - 6 * MINUTE,
  ingestedAt: NOW - 5 * MINUTE,
  ...over,
})

export const detail = (over: Partial<DeadLetterDetail> = {}): DeadLetterDetail => ({
  ...deadLetter(),
  body: { preview: { order: 1001, email: '***' }, isHidden: false },
  ...over,
})

export const earlierCycle = (): Output<'listCycles'>['cycles'][number] => {
  const { group: inGroup, history, attempts, reason, firstFailedAt } = deadLetter()
  return {
    cycle: 1,
    group: inGroup,
    replayId: RUN_A,
    firstFailedAt,
    lastFailedAt: NOW - 90 * MINUTE,
    attempts,
    reason,
    history,
    isEdited: true,
    body: { preview: { order: 1001, email: '***', total: '12' }, isHidden: false },
  }
}

const NONE: Run['counts'] = {
  planned: 0,
  skipped: 0,
  queued: 0,
  claimed: 0,
  publishing: 0,
  published: 0,
  resolved: 0,
  failed_again: 0,
  unknown: 0,
  not_returned: 0,
  expired: 0,
  cancelled: 0,
}

export const theRun = ({
  counts,
  ...over
}: Partial<Omit<Run, 'counts'>> & { counts?: Partial<Run['counts']> } = {}): Run => ({
  id: RUN_A,
  source: 'orders',
  state: 'planned',
  hash: 'sha256:abc',
  note: 'payments-api is back',
  selection: { group: GROUP_A },
  options: {
    ratePerSecond: 200,
    canary: [1, 5, 50],
    maxFailureRatio: 0.2,
    outcomeTimeoutMs: 30_000,
    onUnconfirmed: 'pause',
    maxAgeMs: 86_400_000,
    inboxRetentionMs: 604_800_000,
    overrides: [],
  },
  isChanged: false,
  plannedBy: 'alex',
  plannedAt: NOW,
  skipped: { too_old: 120, not_open: 12 },
  ...over,
  counts: { ...NONE, ...(counts ?? { planned: 37_980, skipped: 132 }) },
})

export const source = (over: Partial<Output<'listSources'>['sources'][number]> = {}) => ({
  source: 'orders',
  open: 38_112,
  replaying: 0,
  undecided: 0,
  count: 51_000,
  openByClass: { transient: 38_000, schema: 112 },
  oldestAt: NOW - 23 * MINUTE,
  expiring: 0,
  lastIngestedAt: NOW - MINUTE,
  state: { status: 'connected' as const, depth: 0, lag: 12, processes: [] },
  setAside: 0,
  permissions: ['view', 'replay'] as const as ('view' | 'replay')[],
  ...over,
})
