/** An AMQP frame: type, channel and size, the payload, and an end mark. */
const HEADER_BYTES = 7
const END_BYTES = 1
const METHOD = 1
const BASIC = 60
const ACK = 80
const NACK = 120

export interface ConfirmFilter {
  /** Returns the server's bytes without the dropped ones. */
  readonly pass: (bytes: Buffer) => Buffer
  /** Returns the number of dropped confirms. */
  readonly dropped: () => number
}

/**
 * Removes the confirms from the server's bytes and passes everything else. The connection looks
 * alive, and the publisher waits for confirms that the broker has already sent.
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
