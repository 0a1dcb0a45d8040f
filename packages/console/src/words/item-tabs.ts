import type { Run } from '@redrive/api'
import type { ItemTab } from '../address-values.ts'
import type { ItemState } from './runs.ts'

export const TAB_STATES: Readonly<Record<ItemTab, readonly ItemState[]>> = {
  refailed: ['failed_again'],
  unknown: ['unknown', 'not_returned'],
  skipped: ['skipped', 'expired', 'cancelled'],
  resolved: ['resolved'],
  all: [],
}

/** Returns the number of messages in a tab. */
export function tabCount({ counts }: Pick<Run, 'counts'>, tab: ItemTab): number {
  const states = TAB_STATES[tab]
  return Object.entries(counts).reduce(
    (sum, [state, count]) =>
      states.length === 0 || states.includes(state as ItemState) ? sum + count : sum,
    0,
  )
}

/** The first tab with messages that need a reader. */
export const firstTab = (run: Pick<Run, 'counts'>): ItemTab =>
  (['refailed', 'unknown'] as const).find((tab) => tabCount(run, tab) > 0) ?? 'all'
