import { createServer, type Socket } from 'node:net'
import { type Listener, listen } from './tcp.ts'

const SASL_HANDSHAKE = 17
const API_VERSIONS = 18
const SASL_AUTHENTICATE = 36
const SASL_AUTHENTICATION_FAILED = 58

/** Starts a broker that accepts the mechanism PLAIN and rejects each password. */
export function listenAsStrictKafka(): Promise<Listener> {
  return listen(
    createServer((socket) => {
      let pending = Buffer.alloc(0)
      socket.on('data', (chunk) => {
        pending = Buffer.concat([pending, chunk])
        while (pending.length >= 4 && pending.length >= 4 + pending.readInt32BE(0)) {
          const size = pending.readInt32BE(0)
          respondTo(socket, pending.subarray(4, 4 + size))
          pending = pending.subarray(4 + size)
        }
      })
    }),
  )
}

/** A request has its kind, its version and a number, which the response repeats. */
function respondTo(socket: Socket, request: Buffer): void {
  const body = bodyFor(request.readInt16BE(0))
  const head = Buffer.alloc(8)
  head.writeInt32BE(4 + body.length, 0)
  request.copy(head, 4, 4, 8)
  socket.write(Buffer.concat([head, body]))
}

function bodyFor(kind: number): Buffer {
  if (kind === API_VERSIONS) {
    const rows = [SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE].map((api) => int16(api, 0, 1))
    return Buffer.concat([int16(0), int32(rows.length), ...rows, int32(0)])
  }
  if (kind === SASL_HANDSHAKE) return Buffer.concat([int16(0), int32(1), text('PLAIN')])
  return Buffer.concat([int16(SASL_AUTHENTICATION_FAILED), text('Authentication failed'), int32(0)])
}

function int16(...values: readonly number[]): Buffer {
  return Buffer.concat(
    values.map((value) => {
      const bytes = Buffer.alloc(2)
      bytes.writeInt16BE(value)
      return bytes
    }),
  )
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

const text = (value: string) => Buffer.concat([int16(value.length), Buffer.from(value)])
