/** An AMQP frame: type, channel and size, the payload, and an end mark. */
const HEADER_BYTES = 7
const END_BYTES = 1
const METHOD = 1
const BASIC = 60
const ACK = 80
const NACK = 120

export interface ConfirmFilter {
  /** What is left of the server's bytes. */
  readonly pass: (bytes: Buffer) => Buffer
  /** Confirms that did not get through. */
  readonly dropped: () => number
}

/**
 * Takes the confirms out of what a server sends, and leaves everything else: the connection looks
 * alive, and whoever published waits for a word that the broker has long said.
 */
export function withoutConfirms(): ConfirmFilter {
  let rest: Buffer = Buffer.alloc(0)
  let dropped = 0
  return {
    dropped: () => dropped,
    pass(bytes) {
      rest = Buffer.concat([rest, bytes])
      const kept: Buffer[] = []
      for (;;) {
        const frame = firstFrame(rest)
        if (frame === undefined) return Buffer.concat(kept)
        rest = rest.subarray(frame.length)
        if (isConfirm(frame)) dropped += 1
        else kept.push(frame)
      }
    },
  }
}

function firstFrame(bytes: Buffer): Buffer | undefined {
  if (bytes.length < HEADER_BYTES) return undefined
  const length = HEADER_BYTES + bytes.readUInt32BE(3) + END_BYTES
  return bytes.length < length ? undefined : bytes.subarray(0, length)
}

function isConfirm(frame: Buffer): boolean {
  if (frame[0] !== METHOD || frame.readUInt16BE(HEADER_BYTES) !== BASIC) return false
  const method = frame.readUInt16BE(HEADER_BYTES + 2)
  return method === ACK || method === NACK
}
