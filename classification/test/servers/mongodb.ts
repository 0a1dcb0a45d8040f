import { createServer, type Socket } from 'node:net'
import { BSON } from 'mongodb'
import { type Listener, listen } from './tcp.ts'

type Document = Readonly<Record<string, unknown>>

/** Responses by the name of the command; `close` ends the connection, `silence` sends nothing. */
export type MongoAnswers = Readonly<Record<string, Document | 'close' | 'silence'>>

/** Length, request id, response id and kind of a message; then flags and the kind of its section. */
const HEADER = 16
const PREFIX = 5
const OP_MSG = 2013

/** A primary of a replica set, so that the client uses sessions and retries. */
const hello = (port: number): Document => ({
  ok: 1,
  isWritablePrimary: true,
  setName: 'rs0',
  hosts: [`127.0.0.1:${port}`],
  me: `127.0.0.1:${port}`,
  minWireVersion: 0,
  maxWireVersion: 25,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
  logicalSessionTimeoutMinutes: 30,
  saslSupportedMechs: ['app.SCRAM-SHA-256'],
})

/** Starts a server that speaks the protocol of MongoDB. Commands without a row in `answers` succeed. */
export function listenAsMongo(answers: MongoAnswers): Promise<Listener> {
  return listen(
    createServer((socket) => {
      let pending = Buffer.alloc(0)
      socket.on('data', (chunk) => {
        pending = Buffer.concat([pending, chunk])
        while (pending.length >= HEADER && pending.length >= pending.readInt32LE(0)) {
          const length = pending.readInt32LE(0)
          answer(socket, pending.subarray(0, length), answers)
          pending = pending.subarray(length)
        }
      })
    }),
  )
}

function answer(socket: Socket, message: Buffer, answers: MongoAnswers): void {
  const section = message.subarray(HEADER + PREFIX)
  const command = BSON.deserialize(section.subarray(0, section.readInt32LE(0)))
  const [name = ''] = Object.keys(command)
  const found = answers[name] ?? (name === 'hello' ? hello(socket.localPort ?? 0) : { ok: 1 })
  if (found === 'close') socket.destroy()
  else if (found !== 'silence') socket.write(framed(message.readInt32LE(4), found))
}

function framed(requestId: number, document: Document): Buffer {
  const body = BSON.serialize(document)
  const head = Buffer.alloc(HEADER + PREFIX)
  head.writeInt32LE(head.length + body.length, 0)
  head.writeInt32LE(requestId, 8)
  head.writeInt32LE(OP_MSG, 12)
  return Buffer.concat([head, body])
}
