import type { Action, Operation } from '@redrive/api'
import type { Catalog, Sourced } from '@redrive/catalog'
import { isRedriveError } from '@redrive/core'
import { allows, allowsAll } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'
import { isOddValue, isRefused, Refusal } from '../access/refusal.ts'
import type { NewEntry, WriteAudit } from '../audit/entry.ts'
import type { Insist } from '../insist.ts'
import { bounded, type Facts } from './facts.ts'

/** What is done, by whom, with what: the same in every entry of the audit about it. */
export interface Deed {
  readonly caller: Caller
  readonly what: Operation
  readonly source?: string
  readonly subject?: string
  /** Small and plain; never a payload or a secret. */
  readonly facts?: Facts
}

/** What is only known when it is done, such as the id of what was made. */
type Made = Pick<Deed, 'source' | 'subject'>

/** Decides with `allows`, writes the audit, and only then lets something happen. */
export class Guard {
  readonly #catalog: Catalog
  readonly #audit: WriteAudit
  readonly #insist: Insist

  constructor(catalog: Catalog, audit: WriteAudit, insist: Insist) {
    this.#catalog = catalog
    this.#audit = audit
    this.#insist = insist
  }

  /** The source of one thing, if the caller may do all of this with it. */
  async sourceOf(
    deed: Deed,
    kind: Sourced,
    id: string,
    ...actions: readonly Action[]
  ): Promise<string> {
    const source = (await this.#catalog.sourcesOf(kind, [id])).get(id)
    if (source === undefined) throw notFound(kind)
    await this.check({ ...deed, source, subject: id }, source, actions, kind)
    return source
  }

  /** What may not be seen is not there; what may be seen and not done is forbidden. */
  async check(
    deed: Deed,
    source: string,
    actions: readonly Action[],
    kind: Sourced | 'source' = 'source',
  ): Promise<void> {
    const needed: readonly Action[] = ['view', ...actions]
    const missing = needed.find((action) => !allows(deed.caller, action, source))
    if (missing === undefined) return
    await this.#write({ ...deed, source, facts: { ...deed.facts, action: missing } }, 'denied')
    throw missing === 'view' ? notFound(kind) : forbidden(missing, source)
  }

  /** What concerns all sources. */
  async checkAll(deed: Deed, action: Action): Promise<void> {
    if (allowsAll(deed.caller, action)) return
    throw await this.denial(deed, `It concerns all sources, and you may not ${action} all of them.`)
  }

  /** Written down as denied; for whoever calls to throw. */
  async denial(deed: Deed, detail: string): Promise<Refusal> {
    await this.#write(deed, 'denied')
    return new Refusal('forbidden', detail)
  }

  /** Written down before it is shown. */
  async seen(deed: Deed): Promise<void> {
    await this.#write(deed, 'seen')
  }

  /** Written down before it happens, and what came of it after. */
  async mutate<T>(
    deed: Deed,
    work: () => Promise<T>,
    made: (answer: T) => Made = () => ({}),
  ): Promise<T> {
    await this.#write(deed, 'asked')
    let answer: T
    try {
      answer = await work()
    } catch (error) {
      const outcome = isRefused(error) ? 'refused' : 'failed'
      await this.#writeAfter({ ...deed, facts: { ...deed.facts, because: codeOf(error) } }, outcome)
      throw error
    }
    await this.#writeAfter({ ...deed, ...made(answer) }, 'done')
    return answer
  }

  async #write(deed: Deed, outcome: NewEntry['outcome']): Promise<void> {
    try {
      await this.#audit(entryOf(deed, outcome))
    } catch (cause) {
      const detail = 'The audit cannot be written now, and nothing is done without it. Ask again.'
      throw new Refusal('unavailable', detail, { cause, retryAfterMs: RETRY_MS })
    }
  }

  /** That it was asked for is in the audit already. What came of it does not change any more, so it is answered. */
  async #writeAfter(deed: Deed, outcome: NewEntry['outcome']): Promise<void> {
    const { caller, what, subject } = deed
    const entry = entryOf(deed, outcome)
    const which = subject === undefined ? what : `${what} ${subject}`
    const said = `the entry of the audit that ${which} of ${caller.person} is ${outcome}`
    await this.#insist(said, () => this.#audit(entry))
  }
}

const entryOf = (deed: Deed, outcome: NewEntry['outcome']): NewEntry => ({
  ...deed,
  facts: { ...bounded(deed.facts ?? {}), name: deed.caller.name },
  outcome,
})

/** 5 s: a database that was restarted is back by then. */
const RETRY_MS = 5_000

const NOUNS: Readonly<Record<Sourced | 'source', string>> = {
  deadLetter: 'dead letter',
  group: 'group',
  run: 'run',
  source: 'source',
}

export const notFound = (kind: Sourced | 'source'): Refusal =>
  new Refusal('not_found', `There is no such ${NOUNS[kind]}, or you may not see it.`)

const forbidden = (action: Action, source: string) =>
  new Refusal(
    'forbidden',
    `You may not ${action} in the source '${source}'. Ask an administrator for a role that may.`,
  )

function codeOf(error: unknown): string {
  if (error instanceof Refusal || isRedriveError(error)) return error.code
  return isOddValue(error) ? 'invalid' : 'internal'
}
