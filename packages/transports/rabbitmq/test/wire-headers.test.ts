import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { expect, it } from 'vitest'
import { headerTypesOf, readWireHeaders } from '../src/connection/wire-headers.ts'

/** A frame: its type, channel 1, its size, its content and its end. */
function frame(type: number, content: Buffer): Buffer {
  const head = Buffer.alloc(7)
  head.writeUInt8(type)
  head.writeUInt16BE(1, 1)
  head.writeUInt32BE(content.length, 3)
  return Buffer.concat([head, content, Buffer.from([0xce])])
}

/** `basic.deliver` to the consumer `c`. */
function deliver(tag: number): Buffer {
  const content = Buffer.from([0, 60, 0, 60, 1, 0x63, 0, 0, 0, 0, 0, 0, 0, tag, 0, 0, 0])
  return frame(1, content)
}

/** The properties of a message whose headers are this table. */
function properties(table: Buffer): Buffer {
  const content = Buffer.alloc(18)
  content.writeUInt16BE(60)
  content.writeUInt16BE(0x20_00, 12)
  content.writeUInt32BE(table.length, 14)
  return frame(2, Buffer.concat([content, table]))
}

const INT64 = Buffer.from('\x01al\0\0\0\0\0\0\0\x05', 'latin1')
const INT8 = Buffer.from('\x01ab\x05', 'latin1')
const CHANNEL_CLOSE_OK = frame(1, Buffer.from([0, 20, 0, 41]))
const HEARTBEAT = Buffer.from([8, 0, 0, 0, 0, 0, 0, 0xce])
const BODY = frame(3, Buffer.from('x'.repeat(100)))

/** Returns a connection that receives these chunks, and a function that returns the types of a message. */
function received(chunks: readonly Buffer[], rest?: Buffer) {
  const waiting = [...chunks]
  const stream = { read: () => waiting.shift() ?? null }
  readWireHeaders({ connection: { stream, rest } } as unknown as ChannelModel)
  while (stream.read() !== null);
  const channel = { connection: { stream }, ch: 1 } as unknown as Channel
  return (deliveryTag: number) =>
    headerTypesOf(channel, { fields: { deliveryTag } } as unknown as ConsumeMessage)
}

const all = Buffer.concat([
  ...[HEARTBEAT, deliver(1), properties(INT64), BODY, BODY],
  ...[deliver(2), properties(INT8), BODY, deliver(3), properties(INT64), BODY],
])

it('reads the types wherever the bytes are cut', () => {
  for (let size = 1; size <= all.length; size += 1) {
    const chunks: Buffer[] = []
    for (let at = 0; at < all.length; at += size) chunks.push(all.subarray(at, at + size))
    const typesOf = received(chunks)
    expect([typesOf(1), typesOf(2), typesOf(3)]).toEqual([
      { a: 'int64' },
      undefined,
      { a: 'int64' },
    ])
    expect(typesOf(1)).toBeUndefined()
  }
})

it('continues with bytes that the client library had already read', () => {
  const typesOf = received([all.subarray(50)], all.subarray(0, 50))
  expect(typesOf(3)).toEqual({ a: 'int64' })
})

it('forgets the messages of a closed channel, whose number and tags are used again', () => {
  const again = [deliver(1), properties(INT8), BODY]
  const typesOf = received([deliver(1), properties(INT64), BODY, CHANNEL_CLOSE_OK, ...again])
  expect(typesOf(1)).toBeUndefined()
})

it('stops at bytes that it does not understand, without an error', () => {
  const broken = Buffer.from([1, 0, 1, 0, 0, 0, 1, 0, 0])
  const typesOf = received([
    deliver(1),
    properties(INT64),
    BODY,
    broken,
    deliver(2),
    properties(INT64),
  ])
  expect([typesOf(1), typesOf(2)]).toEqual([undefined, undefined])
})
