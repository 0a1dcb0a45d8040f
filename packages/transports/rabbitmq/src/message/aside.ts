import { deflateSync, inflateSync } from 'node:zlib'
import type { ConsumeMessage } from 'amqplib'
import type { RabbitMqHeaderTable } from '../header-tables.ts'
import { type Headers, NO_HEADERS, propertiesOf } from './properties.ts'

const ASIDE = 'redrive-aside' satisfies keyof RabbitMqHeaderTable

/** Headers and properties of the producer that a copy must not have. The copy stores them in one header. */
interface Aside {
  /** `CC` and `BCC`, so that the broker routes the copy to one queue only; all headers when they cannot be encoded. */
  readonly headers: Headers
  /** The producer's time to live. On a copy it would shorten the delay, or expire the dead letter. */
  readonly expiration?: string
  /** The producer's user. The broker rejects a message whose user is not the one of the connection. */
  readonly userId?: string
}

const NOTHING_ASIDE: Aside = Object.freeze({ headers: NO_HEADERS })

/** Returns the header that stores these headers and the properties of the message; none when there is nothing to store. */
export function asideHeader(raw: ConsumeMessage, own: Headers): Headers {
  const properties = propertiesOf(raw)
  const before = asideIn(properties.headers ?? NO_HEADERS)
  const headers = Object.entries(own).filter(([, value]) => value !== undefined)
  const expiration = before.expiration ?? properties.expiration
  const userId = before.userId ?? properties.userId
  if (headers.length === 0 && expiration === undefined && userId === undefined) return NO_HEADERS
  const aside = { headers: Object.fromEntries(headers), expiration, userId }
  return { [ASIDE]: compress(JSON.stringify(aside)) }
}

/** Reads the stored headers and properties. An unreadable value counts as absent: it may have been changed on the way. */
export function asideIn(headers: Headers): Aside {
  const text = headers[ASIDE]
  if (typeof text !== 'string') return NOTHING_ASIDE
  try {
    return { ...NOTHING_ASIDE, ...(JSON.parse(decompress(text)) as Aside) }
  } catch {
    return NOTHING_ASIDE
  }
}

const DEFLATED = 'deflated:'
/** 4 KiB: a longer text may not fit into the remaining header space. */
const COMPRESS_FROM = 4_096
/** 1 MiB: far more than headers can contain. Redrive did not write a text that decompresses to more. */
const DECOMPRESSED_MAX = 1_048_576

const compress = (text: string) =>
  text.length < COMPRESS_FROM ? text : `${DEFLATED}${deflateSync(text).toString('base64')}`

function decompress(text: string): string {
  if (!text.startsWith(DEFLATED)) return text
  const bytes = Buffer.from(text.slice(DEFLATED.length), 'base64')
  return inflateSync(bytes, { maxOutputLength: DECOMPRESSED_MAX }).toString()
}
