import { type Delivery, RedriveError } from '@redrive/core'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Awaitable } from './awaitable.ts'
import { messageOf } from './log/text.ts'

/** A message as a handler sees it. */
export interface Message<Body = unknown> {
  readonly id: string
  /** Business idempotency key; it stays the same through retries and replays. */
  readonly key: string
  readonly type: string | undefined
  readonly source: string
  readonly lane: string | undefined
  /** Decoded, and validated when the consumer has a schema. */
  readonly body: Body
  /** The bytes exactly as they arrived. */
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly headers: Readonly<Record<string, unknown>>
}

/** Converts bytes to the value that the schema or the handler reads. */
export type Decode = (bytes: Uint8Array, delivery: Delivery) => unknown

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Decodes by content type: text as text, JSON (also without a content type) as JSON, anything else as bytes. Null for a tombstone. */
export const decodeByContentType: Decode = (bytes, { contentType, isTombstone }) => {
  if (isTombstone === true) return null
  const type = contentType?.toLowerCase()
  if (type === undefined || type.includes('json')) return JSON.parse(utf8.decode(bytes))
  return type.startsWith('text/') ? utf8.decode(bytes) : bytes
}

/**
 * A message whose body is decoded when the handler first reads it (only without a schema). A handler
 * that needs only the bytes skips decoding. A decoding error fails the attempt as a schema failure.
 */
export class LazyMessage implements Message {
  readonly #delivery: Delivery
  readonly #decode: Decode
  #body: unknown
  #isDecoded = false

  constructor(delivery: Delivery, decode: Decode) {
    this.#delivery = delivery
    this.#decode = decode
  }

  get id(): string {
    return this.#delivery.id
  }
  get key(): string {
    return this.#delivery.key
  }
  get type(): string | undefined {
    return this.#delivery.type
  }
  get source(): string {
    return this.#delivery.source
  }
  get lane(): string | undefined {
    return this.#delivery.lane
  }
  get bytes(): Uint8Array {
    return this.#delivery.bytes
  }
  get contentType(): string | undefined {
    return this.#delivery.contentType
  }
  get headers(): Readonly<Record<string, unknown>> {
    return this.#delivery.headers
  }
  get body(): unknown {
    if (!this.#isDecoded) {
      this.#body = decodeBody(this.#decode, this.#delivery)
      this.#isDecoded = true
    }
    return this.#body
  }
  /** Replaces the decoded value by the validated one: a schema may convert it. */
  withBody(body: unknown): this {
    this.#body = body
    this.#isDecoded = true
    return this
  }
}

/** Converts any exception of a decoder: the payload cannot be read. */
function unreadable(cause: unknown): RedriveError {
  const text = `The body cannot be decoded: ${messageOf(cause)}`
  return new RedriveError('PAYLOAD_INVALID', text, { cause })
}

function decodeBody(decode: Decode, delivery: Delivery): unknown {
  try {
    return decode(delivery.bytes, delivery)
  } catch (cause) {
    throw unreadable(cause)
  }
}

/** Returns the message with its body decoded by the user's decoder, which may be asynchronous. */
export async function decodeNow(delivery: Delivery, decode: Decode): Promise<LazyMessage> {
  try {
    return new LazyMessage(delivery, decode).withBody(await decode(delivery.bytes, delivery))
  } catch (cause) {
    throw unreadable(cause)
  }
}

/** Returns the message with a validated body, or throws a `PAYLOAD_INVALID` error with the location of each problem. */
export function checkBody(message: LazyMessage, schema: StandardSchemaV1): Awaitable<LazyMessage> {
  const checked = checkValue(message.body, schema)
  return checked instanceof Promise
    ? checked.then((body) => message.withBody(body))
    : message.withBody(checked)
}

/** Returns the value of the schema, or throws a `PAYLOAD_INVALID` error with the location of each problem. */
export function checkValue(value: unknown, schema: StandardSchemaV1): Awaitable<unknown> {
  const result = schema['~standard'].validate(value)
  return 'then' in result ? Promise.resolve(result).then(accepted) : accepted(result)
}

function accepted(result: StandardSchemaV1.Result<unknown>): unknown {
  if (result.issues === undefined) return result.value
  const problems = result.issues.map((issue) => `${issue.message} at ${pathOf(issue)}`)
  throw new RedriveError('PAYLOAD_INVALID', problems.join('; '), { problems })
}

function pathOf({ path = [] }: StandardSchemaV1.Issue): string {
  return `/${path.map((part) => String(typeof part === 'object' ? part.key : part)).join('/')}`
}
