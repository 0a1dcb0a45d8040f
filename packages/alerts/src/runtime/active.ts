import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { type AlertNotice, runbookOf } from '../notice.ts'
import { type Condition, runbookNameOf, severityOf } from './condition.ts'
import type { Occurrence } from './occurrences.ts'

/** 1,000: more alerts in one process have a common cause, which the first ones show. */
const ACTIVE_MAX = 1_000

interface ActiveAlert {
  readonly notice: AlertNotice
  /** Set when the alert ends without an event: the time. */
  readonly endsAt: number | undefined
  /** Whether it is a state that every check must find again. */
  readonly isState: boolean
}

/** The alerts of this process: which ones are active, and which ones have ended. */
export class ActiveAlerts {
  readonly #active = new Map<string, ActiveAlert>()
  readonly #quietMs: number
  readonly #onChange: (notice: AlertNotice) => void

  /** `onChange` gets each begin and each end. */
  constructor(quietMs: number, onChange: (notice: AlertNotice) => void) {
    this.#quietMs = quietMs
    this.#onChange = onChange
  }

  /** Begins an alert, or counts an event of an active one. */
  occur({ condition, count }: Occurrence, now: number): void {
    const key = keyOf(condition)
    const endsAt = now + this.#quietMs
    const active = this.#active.get(key)
    if (active === undefined) {
      const facts = { ...condition.facts, count }
      return this.#begin({ ...condition, facts }, now, { isState: false, endsAt })
    }
    const facts = { ...active.notice.facts, count: (active.notice.facts.count ?? 0) + count }
    this.#active.set(key, { ...active, endsAt, notice: { ...active.notice, facts } })
  }

  /** Begins the states that hold, and ends the others. Ends states that were quiet for long enough. */
  check(states: readonly Condition[], now: number): void {
    for (const state of states) this.#begin(state, now, { isState: true })
    const held = new Set(states.map(keyOf))
    for (const [key, { isState, endsAt }] of this.#active) {
      if (isState ? !held.has(key) : endsAt !== undefined && endsAt <= now) this.#end(key, now)
    }
  }

  #begin(
    condition: Condition,
    now: number,
    { isState, endsAt }: { readonly isState: boolean; readonly endsAt?: number },
  ): void {
    const key = keyOf(condition)
    if (this.#active.has(key) || this.#active.size >= ACTIVE_MAX) return
    const notice: AlertNotice = {
      key,
      id: randomUUID(),
      status: 'firing',
      kind: condition.kind,
      severity: severityOf(condition),
      summary: condition.summary,
      source: condition.source,
      startedAt: now,
      at: now,
      facts: { ...condition.facts, host: hostname() },
      runbook: runbookOf(runbookNameOf(condition)),
    }
    this.#active.set(key, { notice, endsAt, isState })
    this.#onChange(notice)
  }

  #end(key: string, now: number): void {
    const active = this.#active.get(key)
    if (active === undefined) return
    this.#active.delete(key)
    this.#onChange({ ...active.notice, status: 'resolved', at: now })
  }
}

/** Contains neither the process nor the host: all processes of a service have the same incident. */
function keyOf({ kind, source, subject }: Pick<Condition, 'kind' | 'source' | 'subject'>): string {
  return ['redrive', kind, source, subject].map(encodeURIComponent).join('/')
}
