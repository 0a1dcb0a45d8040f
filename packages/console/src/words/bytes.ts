/** 16 bytes in a line, as other tools do. */
const WIDTH = 16

export interface HexLine {
  /** Position of the first byte. */
  readonly at: string
  readonly hex: string
  readonly text: string
}

/** Returns the first bytes as lines of position, hexadecimal digits and printable characters. */
export function hexLines(bytes: Uint8Array, most = bytes.length): readonly HexLine[] {
  const shown = bytes.subarray(0, most)
  return Array.from({ length: Math.ceil(shown.length / WIDTH) }, (_, row) => {
    const part = [...shown.subarray(row * WIDTH, (row + 1) * WIDTH)]
    return {
      at: (row * WIDTH).toString(16).padStart(6, '0'),
      hex: part
        .map((byte) => byte.toString(16).padStart(2, '0'))
        .join(' ')
        .padEnd(WIDTH * 3 - 1),
      text: part
        .map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.'))
        .join(''),
    }
  })
}

/** Returns the bytes of base64 text. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  // A loop, because a callback for each of many million bytes takes seconds.
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at)
  return bytes
}

/** Returns the text of bytes, or undefined if they are not valid UTF-8. */
export function textOfBytes(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
