import { createHash } from 'node:crypto'
import { type Delivery, RedriveError } from '@redrive/core'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Attempt } from './attempt.ts'
import {
  checkBody,
  type Decode,
  decodeByContentType,
  decodeNow,
  LazyMessage,
  type Message,
} from './message.ts'
import type { Awaitable, Inbox } from './ports.ts'

/** The handler with everything around it that is part of an attempt: decoding, schema, inbox. */
export type Call = (attempt: Attempt) => Awaitable<unknown>

export interface CallParts {
  readonly handler: (message: Message, attempt: Attempt) => Awaitable<unknown>
  /** The user's own; undefined for the default, which decodes when the body is first read. */
  readonly decode: Decode | undefined
  readonly schema: StandardSchemaV1 | undefined
  readonly inbox: Inbox | undefined
  /** The consumer's name in the inbox. */
  readonly consumer: string
  readonly timeoutMs: number
}

/** Built once per consumer, so that an attempt pays only for the parts that are there. */
export function composeCall(parts: CallParts): Call {
  const { handler, decode, schema, inbox } = parts
  const prepare = preparation(decode, schema)
  if (inbox !== undefined) {
    const ready = prepare ?? lazily
    return (attempt) =>
      handleOnce(inbox, parts, attempt, async () => handler(await ready(attempt), attempt))
  }
  if (prepare === undefined) return (attempt) => handler(lazily(attempt), attempt)
  return (attempt) => {
    const message = prepare(attempt)
    return message instanceof Promise
      ? message.then((ready) => handler(ready, attempt))
      : handler(message, attempt)
  }
}

const lazily = (attempt: Attempt) => new LazyMessage(attempt.delivery, decodeByContentType)

/** What must happen before the handler sees the message; undefined when nothing must. */
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

async function handleOnce(
  inbox: Inbox,
  { consumer, timeoutMs }: CallParts,
  attempt: Attempt,
  work: () => Promise<unknown>,
): Promise<void> {
  const { delivery } = attempt
  const { key, replaces } = delivery
  const entry = {
    consumer,
    key,
    fingerprint: fingerprint(delivery),
    ...(replaces === undefined ? {} : { replaces }),
  }
  const { signal } = attempt
  const begin = async (tx: unknown) => {
    attempt.tx = tx
    await work()
  }
  const answer = await inbox.handle(entry, begin, { signal, timeoutMs })
  if (answer === 'conflict') {
    throw new RedriveError(
      'KEY_CONFLICT',
      `The key ${delivery.key} was already handled with other content. Either the producer reuses keys, or this message was edited without a new key.`,
    )
  }
  attempt.alreadyHandled = answer === 'already_handled'
}

function fingerprint(delivery: Delivery): string {
  return createHash('sha256').update(delivery.bytes).digest('base64url')
}
