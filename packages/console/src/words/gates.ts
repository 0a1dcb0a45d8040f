import { OVERRIDES } from '@redrive/api/enums'
import type { MarkName } from '../components/shapes.tsx'

export type Override = (typeof OVERRIDES)[number]

export interface GateText {
  readonly title: string
  readonly why: string
  readonly shape: MarkName
}

/** Why a plan skips messages. */
const GATES: Readonly<Record<string, GateText>> = {
  in_run: { title: 'In another run', why: 'Another active run has them', shape: 'run' },
  not_open: { title: 'Already handled', why: 'They are not open', shape: 'done' },
  unknown_origin: {
    title: 'Other origin',
    why: 'Their origin is not configured for this source',
    shape: 'skip',
  },
  quarantined: {
    title: 'Quarantined',
    why: 'They are suspected of stopping the consumer',
    shape: 'warn',
  },
  too_old: { title: 'Too old', why: 'They failed longer ago than the run accepts', shape: 'time' },
  inbox_expired: {
    title: 'Inbox entry expired',
    why: 'A replay could take effect a second time',
    shape: 'time',
  },
  too_many_cycles: {
    title: 'Replayed three times',
    why: 'They failed again after each replay',
    shape: 'back',
  },
  failed_recently: {
    title: 'Failing again',
    why: 'Their last replay failed with the same error, less than an hour ago',
    shape: 'back',
  },
  patch_failed: { title: 'Patch does not fit', why: 'The change cannot be applied', shape: 'fail' },
  schema_invalid: {
    title: 'Does not match the schema',
    why: 'The body would be rejected again',
    shape: 'fail',
  },
  not_checked: {
    title: 'Not checked',
    why: 'The time for schema checks was over',
    shape: 'time',
  },
  changed: { title: 'Changed', why: 'They changed after the plan', shape: 'skip' },
}

/** Returns the words for a reason. Unknown reasons are shown as they are. */
export const gateText = (reason: string): GateText =>
  GATES[reason] ?? { title: reason, why: '', shape: 'skip' }

/** Whether the user may include messages that this gate skips. */
export const isOverride = (reason: string): reason is Override =>
  OVERRIDES.some((one) => one === reason)
