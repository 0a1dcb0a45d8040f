import { type Delivery, RedriveError } from '@redrive/core'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Awaitable } from './ports.ts'

/** A message as a handler sees it. */
export interface Message<Body = unknown> {
  readonly id: string
  /** Business idempotency key: the same through retries and replays. */
  readonly key: string
  readonly type: string | undefined
  readonly source: string
  readonly lane: string | undefined
  /** Decoded, and checked when the consumer has a schema. */
  readonly body: Body
  /** Exactly as it arrived. */
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly headers: Readonly<Record<string, unknown>>
}

/** Turns bytes into what the schema or the handler reads. */
export type Decode = (bytes: Uint8Array, delivery: Delivery) => unknown

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** JSON unless the content type says otherwise: text stays text, anything else stays bytes. Null for a tombstone. */
export const decodeByContentType: Decode = (bytes, { contentType, isTombstone }) => {
  if (isTombstone === true) return null
  if (contentType === undefined || contentType.includes('json'))
    return JSON.parse(utf8.decode(bytes))
  return contentType.startsWith('text/') ? utf8.decode(bytes) : bytes
}

/**
 * Without a schema the body is decoded when the handler first reads it: a handler that needs only
 * the bytes pays nothing, and what cannot be decoded fails inside the attempt, as a schema failure.
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
  /** The checked value replaces the decoded one: a schema may convert. */
  withBody(body: unknown): this {
    this.#body = body
    this.#isDecoded = true
    return this
  }
}

/** Whatever a decoder throws, it is the payload that cannot be read. */
function unreadable(cause: unknown): RedriveError {
  const why = cause instanceof Error ? cause.message : String(cause)
  return new RedriveError('PAYLOAD_INVALID', `The body cannot be decoded: ${why}`, { cause })
}

function decodeBody(decode: Decode, delivery: Delivery): unknown {
  try {
    return decode(delivery.bytes, delivery)
  } catch (cause) {
    throw unreadable(cause)
  }
}

/** The message with its body decoded by the user's own decoder, which may have to ask someone. */
export async function decodeNow(delivery: Delivery, decode: Decode): Promise<LazyMessage> {
  try {
    return new LazyMessage(delivery, decode).withBody(await decode(delivery.bytes, delivery))
  } catch (cause) {
    throw unreadable(cause)
  }
}

/** The message with a body the schema accepted, or a `PAYLOAD_INVALID` error that says where it did not. */
export function checkBody(message: LazyMessage, schema: StandardSchemaV1): Awaitable<LazyMessage> {
  const checked = checkValue(message.body, schema)
  return checked instanceof Promise
    ? checked.then((body) => message.withBody(body))
    : message.withBody(checked)
}

/** What the schema made of the value, or a `PAYLOAD_INVALID` error that says where it did not fit. */
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
