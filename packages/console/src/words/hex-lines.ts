/** 16 bytes in a line, as other tools do. */
const WIDTH = 16

export interface HexLine {
  /** Position of the first byte. */
  readonly at: string
  readonly hex: string
  readonly text: string
}

/** Returns bytes as lines of position, hexadecimal digits and printable characters. */
export function hexLines(bytes: Uint8Array): readonly HexLine[] {
  return Array.from({ length: Math.ceil(bytes.length / WIDTH) }, (_, row) => {
    const part = [...bytes.subarray(row * WIDTH, (row + 1) * WIDTH)]
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

/** Returns the bytes of a text in base64. */
export const bytesOf = (base64: string): Uint8Array =>
  Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
