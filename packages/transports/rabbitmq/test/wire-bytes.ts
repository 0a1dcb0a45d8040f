import { connect } from 'amqplib'
import { type Rig, socketOf } from './rig.ts'

/** Takes the next message of a queue, and returns all bytes that the broker sent with it. */
export async function bytesOfNext(rig: Rig, queue: string): Promise<Buffer> {
  const model = await connect(rig.url)
  rig.atEnd(() => model.close())
  const socket = socketOf(model)
  const chunks: Buffer[] = []
  const read = socket.read.bind(socket) as () => Buffer | null
  socket.read = () => {
    const chunk = read()
    if (chunk !== null) chunks.push(chunk)
    return chunk
  }
  const channel = await model.createChannel()
  if ((await channel.get(queue, { noAck: true })) === false) throw new Error(`nothing in ${queue}`)
  return Buffer.concat(chunks)
}

/** A message as it is on the wire: the content of its header frame, and its body. */
export interface WireMessage {
  readonly properties: Buffer
  readonly body: Buffer
}

const FRAME = { method: 1, properties: 2, body: 3 }
const PUBLISH = [0, 60, 0, 40]
const HEADERS_FLAG = 0x20_00

/** Publishes a message directly to a queue with exactly these bytes. amqplib would encode them again. */
export async function publishBytes(rig: Rig, queue: string, message: WireMessage): Promise<void> {
  const model = await connect(rig.url)
  rig.atEnd(() => model.close())
  const channel = await model.createConfirmChannel()
  const { ch } = channel as unknown as { readonly ch: number }
  // The exchange is the default one, and no flag is set.
  const method = Buffer.from([...PUBLISH, 0, 0, 0, queue.length, ...Buffer.from(queue), 0])
  const frames = [
    frameOf(FRAME.method, ch, method),
    frameOf(FRAME.properties, ch, message.properties),
    frameOf(FRAME.body, ch, message.body),
  ]
  socketOf(model).write(Buffer.concat(frames))
  // The broker handles the methods of a channel in their order.
  await channel.checkQueue(queue)
}

function frameOf(type: number, channel: number, content: Buffer): Buffer {
  const head = Buffer.alloc(7)
  head.writeUInt8(type)
  head.writeUInt16BE(channel, 1)
  head.writeUInt32BE(content.length, 3)
  return Buffer.concat([head, content, Buffer.from([0xce])])
}

/** Returns the message in the bytes of a connection that received one message. */
export function messageIn(bytes: Buffer): WireMessage {
  const found: Record<number, Buffer[]> = {}
  for (let at = 0; at < bytes.length; ) {
    const size = bytes.readUInt32BE(at + 3)
    const contents = (found[bytes.readUInt8(at)] ??= [])
    contents.push(bytes.subarray(at + 7, at + 7 + size))
    at += 8 + size
  }
  const [properties] = found[FRAME.properties] ?? []
  if (properties === undefined) throw new Error('there is no message in these bytes')
  return { properties, body: Buffer.concat(found[FRAME.body] ?? []) }
}

/** The types of properties in their order, each for one bit, the highest bit first. */
const PROPERTIES = [
  ...['contentType', 'contentEncoding', 'headers', 'deliveryMode', 'priority', 'correlationId'],
  ...['replyTo', 'expiration', 'messageId', 'timestamp', 'type', 'userId', 'appId'],
]
const SIZES: Readonly<Record<string, number>> = { deliveryMode: 1, priority: 1, timestamp: 8 }

/** Returns the bytes of each property in hex, without the headers. */
export function propertiesOf({ properties }: WireMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...partsOf(properties)].flatMap(([name, bytes]) =>
      name === 'headers' ? [] : [[name, bytes.toString('hex')]],
    ),
  )
}

function* partsOf(properties: Buffer): Generator<readonly [string, Buffer]> {
  const flags = properties.readUInt16BE(12)
  let at = 14
  for (const [index, name] of PROPERTIES.entries()) {
    if ((flags & (0x80_00 >> index)) === 0) continue
    const size =
      name === 'headers'
        ? 4 + properties.readUInt32BE(at)
        : (SIZES[name] ?? 1 + properties.readUInt8(at))
    yield [name, properties.subarray(at, at + size)]
    at += size
  }
}

/** Sizes of the values of each type; the other types begin with their length. */
const VALUE_SIZES: Readonly<Record<string, number>> = {
  ...{ t: 1, b: 1, B: 1, s: 2, u: 2, I: 4, i: 4, f: 4, D: 5, l: 8, d: 8, T: 8, V: 0 },
}

/** Returns the type and the bytes of each header, in hex. */
export function headersOf({ properties }: WireMessage): Readonly<Record<string, string>> {
  if ((properties.readUInt16BE(12) & HEADERS_FLAG) === 0) return {}
  const table = new Map(partsOf(properties)).get('headers')?.subarray(4) ?? Buffer.alloc(0)
  const headers: Record<string, string> = {}
  for (let at = 0; at < table.length; ) {
    const value = at + 1 + table.readUInt8(at)
    const type = table.toString('latin1', value, value + 1)
    const size = VALUE_SIZES[type] ?? 4 + table.readUInt32BE(value + 1)
    const bytes = table.subarray(value + 1, value + 1 + size)
    headers[table.toString('utf8', at + 1, value)] = `${type} ${bytes.toString('hex')}`
    at = value + 1 + size
  }
  return headers
}
