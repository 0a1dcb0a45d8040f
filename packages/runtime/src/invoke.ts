import { createHash } from 'node:crypto'
import { type Delivery, RedriveError } from '@redrive/core'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { AttemptInTransaction } from './attempt-in-transaction.ts'
import type { Attempt, AttemptContext } from './attempt.ts'
import {
  checkBody,
  type Decode,
  decodeByContentType,
  decodeNow,
  LazyMessage,
  type Message,
} from './message.ts'
import type { Awaitable } from './awaitable.ts'
import type { Inbox, InboxResult } from './ports/inbox.ts'

/** The handler with the other steps of an attempt: decoding, schema, inbox. */
export type Call = (attempt: Attempt) => Awaitable<unknown>

export interface CallOptions {
  readonly handler: (message: Message, context: AttemptContext<unknown>) => Awaitable<unknown>
  /** The user's decoder; undefined for the default, which decodes when the body is first read. */
  readonly decode: Decode | undefined
  readonly schema: StandardSchemaV1 | undefined
  readonly inbox: Inbox | undefined
  /** The consumer's name in the inbox. */
  readonly consumer: string
  readonly timeoutMs: number
}

/** Builds the call once per consumer, so that an attempt runs only the configured steps. */
export function composeCall(options: CallOptions): Call {
  const { handler, decode, schema, inbox } = options
  const prepare = preparation(decode, schema)
  if (inbox !== undefined) {
    const ready = prepare ?? lazily
    return (attempt) =>
      handleOnce(inbox, options, attempt, async (tx) => {
        const message = await ready(attempt)
        refuseInterrupted(attempt)
        await handler(message, new AttemptInTransaction(attempt, tx))
      })
  }
  if (prepare === undefined) return (attempt) => handler(lazily(attempt), attempt)
  return (attempt) => {
    const message = prepare(attempt)
    if (!(message instanceof Promise)) return handler(message, attempt)
    return message.then((ready) => {
      refuseInterrupted(attempt)
      return handler(ready, attempt)
    })
  }
}

/** Throws when the attempt was interrupted before its handler began: another consumer may own the message. */
function refuseInterrupted({ interruptedBy }: Attempt): void {
  if (interruptedBy !== undefined) throw interruptedBy
}

const lazily = (attempt: Attempt) => new LazyMessage(attempt.delivery, decodeByContentType)

/** Returns the steps before the handler; undefined when there are none. */
function preparation(
  decode: Decode | undefined,
  schema: StandardSchemaV1 | undefined,
): ((attempt: Attempt) => Awaitable<LazyMessage>) | undefined {
  if (decode !== undefined) {
    return async ({ delivery }) => {
      const message = await decodeNow(delivery, decode)
      return schema === undefined ? message : checkBody(message, schema)
    }
  }
  return schema === undefined ? undefined : (attempt) => checkBody(lazily(attempt), schema)
}

type Work = (tx: unknown) => Promise<void>

async function handleOnce(
  inbox: Inbox,
  { consumer, timeoutMs }: CallOptions,
  attempt: Attempt,
  work: Work,
): Promise<void> {
  const { delivery } = attempt
  const { key, replaces } = delivery
  const entry = {
    consumer,
    key,
    fingerprint: fingerprint(delivery),
    ...(replaces === undefined ? {} : { replaces }),
  }
  const { signal, runs } = attempt
  const result = await untilEnded(work, (tracked) =>
    inbox.handle(entry, tracked, { signal, timeoutMs, isRetry: runs > 0 }),
  )
  if (result === 'conflict') {
    throw new RedriveError(
      'KEY_CONFLICT',
      `Key "${delivery.key}" was already handled with different content. The producer reuses keys, or this message was edited without a new key. Use a new key.`,
    )
  }
  attempt.alreadyHandled = result === 'already_handled'
}

/**
 * Passes the work to an inbox and waits until both have ended. An inbox may return or fail while its work runs, for
 * example when it lost its connection. The message must not run again before the work has ended. A message whose work
 * failed is not handled, whatever the inbox returns.
 */
async function untilEnded(
  work: Work,
  handle: (tracked: Work) => Promise<InboxResult>,
): Promise<InboxResult> {
  const calls: Promise<PromiseSettledResult<void>>[] = []
  let hasResult = false
  const tracked = async (tx: unknown): Promise<void> => {
    if (hasResult) throw new Error('The inbox called the work after its result. Call it before.')
    const call = work(tx)
    calls.push(outcomeOf(call))
    await call
  }
  try {
    const result = await handle(tracked)
    hasResult = true
    if (result !== 'already_handled' && result !== 'conflict') await refuseUnhandled(calls)
    return result
  } finally {
    hasResult = true
    await Promise.all(calls)
  }
}

async function outcomeOf(call: Promise<void>): Promise<PromiseSettledResult<void>> {
  const [outcome] = await Promise.allSettled([call])
  return outcome
}

/** Throws unless the last call of the work succeeded. An inbox may call it again in another transaction. */
async function refuseUnhandled(calls: readonly Promise<PromiseSettledResult<void>>[]) {
  const last = await calls.at(-1)
  if (last === undefined) {
    throw new Error(
      'The inbox returned "handled" and never called the work. Call it, or return "already_handled".',
    )
  }
  if (last.status === 'rejected') throw last.reason
}

function fingerprint(delivery: Delivery): string {
  return createHash('sha256').update(delivery.bytes).digest('base64url')
}
