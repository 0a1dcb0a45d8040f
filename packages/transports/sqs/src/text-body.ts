import { isUtf8 } from 'node:buffer'

/** A body as SQS stores it, and how it is encoded. */
export interface TextBody {
  readonly text: string
  readonly encoding: 'base64' | undefined
}

/** SQS rejects other characters: they are not allowed in XML. */
const NOT_STORED = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u
/** The body of no bytes. SQS rejects an empty text. */
const NO_BYTES = '='

/** Returns the bytes as text. Bytes that are no text, or text that SQS rejects, are encoded. */
export function toText(bytes: Uint8Array): TextBody {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = isUtf8(buffer) ? buffer.toString() : undefined
  if (text !== undefined && text !== '' && !NOT_STORED.test(text))
    return { text, encoding: undefined }
  return { text: buffer.toString('base64') || NO_BYTES, encoding: 'base64' }
}

export const toBytes = (text: string, encoding: unknown): Uint8Array =>
  encoding === 'base64' ? Buffer.from(text, 'base64') : Buffer.from(text)
