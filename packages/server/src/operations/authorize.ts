import type { Operation } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import type { Catalog, ResourceKind } from '@redrive/catalog'
import { isRedriveError } from '@redrive/core'
import { allows, allowsAll } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'
import { isUnstorableValue, isRefused, ProblemError } from '../access/problem-error.ts'
import type { Audit } from '../audit/audit.ts'
import type { NewEntry, WriteAudit } from '../audit/entry.ts'
import { createTurns } from '../in-turn.ts'
import type { RetryingWriter } from '../retry-write.ts'
import { bounded, type Facts } from './audit-facts.ts'

/** An action for the audit log: the caller, the operation and its subject. All its entries contain the same values. */
export interface AuditedAction {
  readonly caller: Caller
  readonly operation: Operation
  readonly source?: string
  readonly subject?: string
  /** Small values; never a payload or a secret. */
  readonly facts?: Facts
}

/** Values that are only known after the action, such as the id of a created object. */
type ResultFacts = Pick<AuditedAction, 'source' | 'subject' | 'facts'>

/** How many original messages a person may see in an hour. */
export interface UnmaskLimit {
  readonly perHour: number
  readonly count: Audit['countUnmasked']
}

/** Checks permissions and writes the audit log before an action runs. */
export class Authorizer {
  readonly #catalog: Catalog
  readonly #audit: WriteAudit
  readonly #retryWrite: RetryingWriter
  readonly #unmasking: UnmaskLimit
  /** Counts and writes the views of one person in turn. Otherwise rejected requests would have an entry `viewed`, which counts. */
  readonly #inTurn = createTurns()

  constructor(
    catalog: Catalog,
    audit: WriteAudit,
    retryWrite: RetryingWriter,
    unmasking: UnmaskLimit,
  ) {
    this.#catalog = catalog
    this.#audit = audit
    this.#retryWrite = retryWrite
    this.#unmasking = unmasking
  }

  /** Returns the source of a resource. Rejects unless the caller has all permissions on it. */
  async sourceOf(
    audited: AuditedAction,
    kind: ResourceKind,
    id: string,
    ...actions: readonly Action[]
  ): Promise<string> {
    const source = (await this.#catalog.sourcesOf(kind, [id])).get(id)
    if (source === undefined) throw notFound(kind)
    await this.check({ ...audited, source, subject: id }, source, actions, kind)
    return source
  }

  /** Checks permissions on a source. Without "view" the error is `not_found`; otherwise it is `forbidden`. */
  async check(
    audited: AuditedAction,
    source: string,
    actions: readonly Action[],
    kind: ResourceKind | 'source' = 'source',
  ): Promise<void> {
    const needed: readonly Action[] = ['view', ...actions]
    const missing = needed.find((action) => !allows(audited.caller, action, source))
    if (missing === undefined) return
    await this.#write(
      { ...audited, source, facts: { ...audited.facts, action: missing } },
      'denied',
    )
    throw missing === 'view' ? notFound(kind) : forbidden(missing, source)
  }

  /** Checks a permission on all sources. */
  async checkAll(audited: AuditedAction, action: Action): Promise<void> {
    if (allowsAll(audited.caller, action)) return
    throw await this.denial(audited, `Permission "${action}" is required on all sources.`)
  }

  /** Writes `denied` and returns the error for the caller to throw. */
  async denial(audited: AuditedAction, detail: string): Promise<ProblemError> {
    await this.#write(audited, 'denied')
    return new ProblemError('forbidden', detail)
  }

  /** Writes `viewed`. Call it before a payload is sent. */
  async seen(audited: AuditedAction): Promise<void> {
    await this.#write(audited, 'viewed')
  }

  /** Writes `viewed` before an original message is sent. Rejects a person who has seen too many in the last hour. */
  async unmask(audited: AuditedAction): Promise<void> {
    const { perHour } = this.#unmasking
    await this.#inTurn(audited.caller.person, async () => {
      await this.#requireUnmasked(audited, perHour - 1)
      const own = await this.#write(audited, 'viewed')
      // Requests to other processes may have passed the first check. The earlier entries of the audit log are within the limit.
      await this.#requireUnmasked(audited, perHour, own)
    })
  }

  async #requireUnmasked(audited: AuditedAction, atMost: number, until?: number): Promise<void> {
    const { perHour, count: countUnmasked } = this.#unmasking
    const { count, untilFewerMs } = await countUnmasked(audited.caller.person, perHour + 1, until)
    if (count <= atMost) return
    await this.#write(
      { ...audited, facts: { ...audited.facts, unmaskedPerHour: perHour } },
      'denied',
    )
    throw tooManyUnmasked(perHour, untilFewerMs)
  }

  /** Writes `requested`, runs the mutation and writes its outcome. */
  async mutate<T>(
    audited: AuditedAction,
    work: () => Promise<T>,
    resultFacts: (result: T) => ResultFacts = () => ({}),
  ): Promise<T> {
    await this.#write(audited, 'requested')
    let result: T
    try {
      result = await work()
    } catch (error) {
      const outcome = isRefused(error) ? 'refused' : 'failed'
      await this.#writeAfter(
        { ...audited, facts: { ...audited.facts, because: codeOf(error) } },
        outcome,
      )
      throw error
    }
    await this.#writeAfter({ ...audited, ...resultFacts(result) }, 'done')
    return result
  }

  async #write(audited: AuditedAction, outcome: NewEntry['outcome']): Promise<number> {
    try {
      return await this.#audit(entryOf(audited, outcome))
    } catch (cause) {
      const detail = 'Cannot write the audit log, so the request was not applied. Retry later.'
      throw new ProblemError('unavailable', detail, { cause, retryAfterMs: RETRY_MS })
    }
  }

  /** Writes the outcome, with retries. `requested` is already written, and the outcome is final, so the caller gets it. */
  async #writeAfter(audited: AuditedAction, outcome: NewEntry['outcome']): Promise<void> {
    const { caller, operation, subject } = audited
    const entry = entryOf(audited, outcome)
    const action = subject === undefined ? operation : `${operation} ${subject}`
    const description = `the audit entry "${outcome}" of ${action} by ${caller.person}`
    await this.#retryWrite(description, () => this.#audit(entry))
  }
}

const entryOf = (audited: AuditedAction, outcome: NewEntry['outcome']): NewEntry => ({
  ...audited,
  facts: { ...bounded(audited.facts ?? {}), name: audited.caller.name },
  outcome,
})

/** 5 s: enough for the restart of a database. */
const RETRY_MS = 5_000

const NOUNS: Readonly<Record<ResourceKind | 'source', string>> = {
  deadLetter: 'dead letter',
  group: 'group',
  run: 'run',
  setAside: 'set-aside message',
  source: 'source',
}

export const notFound = (kind: ResourceKind | 'source'): ProblemError =>
  new ProblemError(
    'not_found',
    `This ${NOUNS[kind]} does not exist, or you do not have permission to view it.`,
  )

const forbidden = (action: Action, source: string) =>
  new ProblemError(
    'forbidden',
    `Permission "${action}" is required on source "${source}". Ask an administrator for a role with it.`,
  )

const tooManyUnmasked = (perHour: number, retryAfterMs: number) =>
  new ProblemError(
    'too_many_requests',
    `You have seen ${perHour} original messages in the last hour, which is the limit (masking.unmaskedPerHour). Use the masked messages, or try again in ${Math.ceil(retryAfterMs / 60_000)} min.`,
    { retryAfterMs },
  )

function codeOf(error: unknown): string {
  if (error instanceof ProblemError || isRedriveError(error)) return error.code
  return isUnstorableValue(error) ? 'invalid' : 'internal'
}
