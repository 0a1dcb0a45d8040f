import type { Socket } from 'node:net'
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { type HeaderTypes, readHeaderTypes } from '../message/header-types.ts'
import { socketOf } from './socket.ts'

const METHOD_FRAME = 1
const HEADER_FRAME = 2
const FRAME_END = 0xce
/** 7 bytes before the content of a frame: its type, its channel and its size. One byte follows the content. */
const BEFORE_CONTENT = 7

/** `basic.deliver` and `basic.get-ok`: the class and the number of the method. */
const DELIVER = 0x00_3c_00_3c
const GET_OK = 0x00_3c_00_47
/** The class of methods that open and close channels. */
const CHANNEL_CLASS = 20

/** The flags of the properties in a header frame. The headers follow content type and content encoding. */
const HAS_CONTENT_TYPE = 0x80_00
const HAS_CONTENT_ENCODING = 0x40_00
const HAS_HEADERS = 0x20_00
/** The flags begin after class, weight and size of the body. */
const FLAGS_AT = 12

/**
 * Reads the types of headers from the bytes that a connection receives, because the client library does not keep
 * them. It only looks at the bytes: if it does not understand them, copies have the types of the client library.
 */
class WireHeaders {
  #rest: Buffer | undefined
  #skip = 0
  #isLost = false
  /** The last method of each channel: the next header frame of the channel belongs to it. */
  readonly #methods = new Map<number, Buffer>()
  readonly #types = new Map<string, HeaderTypes>()

  /** Returns the types of a message once. */
  take(channel: number, deliveryTag: number): HeaderTypes | undefined {
    if (this.#types.size === 0) return undefined
    const key = `${channel}:${deliveryTag}`
    const types = this.#types.get(key)
    this.#types.delete(key)
    return types
  }

  push(chunk: Buffer): void {
    if (this.#isLost) return
    try {
      this.#read(chunk)
    } catch (error) {
      // Not the protocol that is described here. The client library reports malformed frames.
      if (!(error instanceof RangeError)) throw error
      this.#stop()
    }
  }

  #read(chunk: Buffer): void {
    const data = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk])
    let at = 0
    for (;;) {
      const skipped = Math.min(this.#skip, data.length - at)
      this.#skip -= skipped
      at += skipped
      if (data.length - at < BEFORE_CONTENT) break
      const type = data.readUInt8(at)
      const bytes = data.readUInt32BE(at + 3) + BEFORE_CONTENT + 1
      if (type !== METHOD_FRAME && type !== HEADER_FRAME) {
        this.#skip = bytes
        continue
      }
      if (data.length - at < bytes) break
      if (data.readUInt8(at + bytes - 1) !== FRAME_END) return this.#stop()
      const content = data.subarray(at + BEFORE_CONTENT, at + bytes - 1)
      this.#frame(type, data.readUInt16BE(at + 1), content)
      at += bytes
    }
    this.#rest = at < data.length ? data.subarray(at) : undefined
  }

  #forget(channel: number): void {
    for (const key of this.#types.keys()) if (key.startsWith(`${channel}:`)) this.#types.delete(key)
  }

  #stop(): void {
    this.#isLost = true
    this.#rest = undefined
    this.#types.clear()
  }

  #frame(type: number, channel: number, content: Buffer): void {
    if (type === METHOD_FRAME) {
      // The number of a closed channel is used again, and its delivery tags begin with 1 again.
      if (content.readUInt16BE(0) === CHANNEL_CLASS) this.#forget(channel)
      this.#methods.set(channel, content)
      return
    }
    const table = tableIn(content)
    const types = table === undefined ? undefined : readHeaderTypes(table)
    const method = types === undefined ? undefined : this.#methods.get(channel)
    const tag = method === undefined ? undefined : deliveryTagIn(method)
    if (types !== undefined && tag !== undefined) this.#types.set(`${channel}:${tag}`, types)
  }
}

function deliveryTagIn(method: Buffer): bigint | undefined {
  const kind = method.readUInt32BE(0)
  // The consumer tag comes first, as text with its length.
  if (kind === DELIVER) return method.readBigUInt64BE(5 + method.readUInt8(4))
  return kind === GET_OK ? method.readBigUInt64BE(4) : undefined
}

/** Returns the encoded headers in the content of a header frame. */
function tableIn(content: Buffer): Buffer | undefined {
  const flags = content.readUInt16BE(FLAGS_AT)
  if ((flags & HAS_HEADERS) === 0) return undefined
  let at = FLAGS_AT + 2
  for (const flag of [HAS_CONTENT_TYPE, HAS_CONTENT_ENCODING]) {
    if ((flags & flag) !== 0) at += 1 + content.readUInt8(at)
  }
  const start = at + 4
  return content.subarray(start, start + content.readUInt32BE(at))
}

const WIRE_HEADERS = new WeakMap<Socket, WireHeaders>()

/** Begins to read the types of headers that this connection receives. */
export function readWireHeaders(model: ChannelModel): ChannelModel {
  const socket = socketOf(model)
  const wire = new WireHeaders()
  WIRE_HEADERS.set(socket, wire)
  // Bytes that the client library has read and not processed: the next frame begins there.
  const { rest } = model.connection as unknown as { readonly rest?: Buffer }
  if (rest !== undefined) wire.push(rest)
  const read = socket.read.bind(socket) as (size?: number) => Buffer | null
  socket.read = (size?: number) => {
    const chunk = read(size)
    if (chunk !== null) wire.push(chunk)
    return chunk
  }
  return model
}

/** Returns the types of the headers of a message; undefined when copies need none. Returns them once. */
export function headerTypesOf(channel: Channel, raw: ConsumeMessage): HeaderTypes | undefined {
  const { connection, ch } = channel as unknown as {
    readonly connection: { readonly stream: Socket }
    readonly ch: number
  }
  return WIRE_HEADERS.get(connection.stream)?.take(ch, raw.fields.deliveryTag)
}
