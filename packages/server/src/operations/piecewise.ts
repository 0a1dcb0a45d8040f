/** An output with a body of any size, which is sent in pieces: as base64 in `bytes`, and as text in `text`. */
export class PiecewiseOutput<
  T extends { readonly bytes: string; readonly text?: string | undefined },
> {
  /** The fields next to the body. */
  readonly fields: Omit<T, 'bytes' | 'text'>
  /** Returns the body. It is called again for the text. */
  readonly pieces: () => AsyncIterable<Uint8Array>
  /** Whether the output contains the body as text, too, if it is valid UTF-8. */
  readonly withText: boolean

  constructor(
    fields: Omit<T, 'bytes' | 'text'>,
    pieces: () => AsyncIterable<Uint8Array>,
    options: { readonly withText: boolean },
  ) {
    this.fields = fields
    this.pieces = pieces
    this.withText = options.withText
  }
}

interface PiecewiseFields {
  readonly fields: object
  readonly pieces: () => AsyncIterable<Uint8Array>
  readonly withText: boolean
}

/**
 * Serializes an output as JSON. Only one piece is in memory at a time. If a piece cannot be read, the response ends
 * without the last brace, so that no client takes it for a whole one.
 */
export async function* piecewiseJson({
  fields,
  pieces,
  withText,
}: PiecewiseFields): AsyncGenerator<string, void, undefined> {
  const text = createTextCheck()
  yield '{"bytes":"'
  let rest: Uint8Array = Buffer.alloc(0)
  for await (const piece of pieces()) {
    if (withText) text.add(piece)
    const all = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    // Base64 encodes three bytes at a time.
    const end = all.length - (all.length % 3)
    rest = all.subarray(end)
    yield base64(all.subarray(0, end))
  }
  yield `${base64(rest)}"`
  for (const [name, value] of Object.entries(fields)) {
    const encoded = JSON.stringify(value) as string | undefined
    if (encoded !== undefined) yield `,${JSON.stringify(name)}:${encoded}`
  }
  if (withText && text.isValid()) yield* textOf(pieces())
  yield '}'
}

const base64 = ({ buffer, byteOffset, length }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, length).toString('base64')

async function* textOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = strictDecoder()
  yield ',"text":"'
  for await (const piece of pieces) yield escaped(decoder.decode(piece, { stream: true }))
  yield `${escaped(decoder.decode())}"`
}

const escaped = (text: string) => JSON.stringify(text).slice(1, -1)

/** Keeps a byte order mark, which is a part of the body. */
const strictDecoder = () => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Checks whether pieces are valid UTF-8 together. A character may begin in one piece and end in the next. */
function createTextCheck() {
  const decoder = strictDecoder()
  let isValid = true
  const accept = (decode: () => string) => {
    try {
      decode()
    } catch {
      // Not UTF-8.
      isValid = false
    }
  }
  return {
    add(piece: Uint8Array): void {
      if (isValid) accept(() => decoder.decode(piece, { stream: true }))
    },
    /** Call it after the last piece. */
    isValid(): boolean {
      if (isValid) accept(() => decoder.decode())
      return isValid
    },
  }
}
