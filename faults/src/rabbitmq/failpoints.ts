import type { Socket } from 'node:net'
import type { Connect } from '@redrive/rabbitmq'
import { type Channel, type ChannelModel, type ConfirmChannel, connect } from 'amqplib'
import type { Failpoint, Point } from './consumer-options.ts'

/**
 * Returns connections that kill their process at one point of a hand-off. They are between the
 * transport and the client library, so the transport runs unchanged.
 */
export function connectWith(failpoint: Failpoint, die: (point: Point) => never): Connect {
  const trap = trapOf(failpoint, die)
  return async (url) => {
    const model = await connect(`${url}?heartbeat=10`, { noDelay: true })
    const createChannel = model.createChannel.bind(model)
    model.createChannel = async (options) => {
      const channel = await createChannel(options)
      watchConsumer(channel, model, trap)
      return channel
    }
    const createConfirmChannel = model.createConfirmChannel.bind(model)
    model.createConfirmChannel = async (options) => {
      const channel = await createConfirmChannel(options)
      watchPublisher(channel, model, trap)
      return channel
    }
    return model
  }
}

/** The point at which to die, and whether the selected hand-off has started. */
interface Trap {
  readonly point: Point
  isMeant(queue: string): boolean
  /** Whether the selected copy is published; later calls belong to it. */
  hasBegun: boolean
  at(point: Point): void
  die(): never
}

function trapOf({ point, queue }: Failpoint, die: (point: Point) => never): Trap {
  return {
    point,
    isMeant: (name) => queue === undefined || new RegExp(`${queue}$`).test(name),
    hasBegun: queue === undefined,
    at(here) {
      if (here === point) die(point)
    },
    die: () => die(point),
  }
}

function watchPublisher(channel: ConfirmChannel, model: ChannelModel, trap: Trap): void {
  const publish = channel.publish.bind(channel)
  channel.publish = (exchange, routingKey, content, options, callback) => {
    if (!trap.isMeant(routingKey)) return publish(exchange, routingKey, content, options, callback)
    trap.at('publish.before')
    trap.hasBegun = true
    const sentBefore = socketOf(model).bytesWritten
    const answer = publish(exchange, routingKey, content, options, (error: unknown, ok) => {
      // The transport must not get the result. The process dies as soon as the copy is sent.
      if (trap.point === 'publish.written') return
      trap.at('confirm.arrived')
      callback?.(error, ok)
      trap.at('confirm.seen')
    })
    if (trap.point === 'publish.written') whenSent(model, sentBefore, () => trap.die())
    return answer
  }
}

function watchConsumer(channel: Channel, model: ChannelModel, trap: Trap): void {
  const { assertQueue, consume, cancel, ack } = bound(channel)
  channel.assertQueue = async (name = '', options) => {
    // A declaration is selected with its queue; declarations at every start are never selected.
    const isMeant = trap.isMeant(name) && /\.(delay|quarantine)\./.test(name)
    if (isMeant) trap.at('declare.before')
    const answer = await assertQueue(name, options)
    if (isMeant) trap.at('declare.after')
    return answer
  }
  channel.consume = async (...args) => {
    // A subscription has no options; the checks at the start have.
    if (args[2] !== undefined) return consume(...args)
    trap.at('consume.before')
    const answer = await consume(...args)
    trap.at('consume.after')
    return answer
  }
  channel.cancel = async (tag) => {
    trap.at('cancel.before')
    const answer = await cancel(tag)
    trap.at('cancel.after')
    return answer
  }
  channel.ack = (message, allUpTo) => {
    if (!trap.hasBegun) return ack(message, allUpTo)
    trap.at('ack.before')
    const sentBefore = socketOf(model).bytesWritten
    ack(message, allUpTo)
    if (trap.point === 'ack.written') whenSent(model, sentBefore, () => trap.die())
  }
}

/**
 * Calls back when the operating system has accepted the bytes. They then arrive even if this
 * process dies.
 */
function whenSent(model: ChannelModel, sentBefore: number, done: () => void): void {
  const { bytesWritten, writableLength } = socketOf(model)
  if (bytesWritten > sentBefore && writableLength === 0) done()
  else setImmediate(() => whenSent(model, sentBefore, done))
}

function bound(channel: Channel): Pick<Channel, 'assertQueue' | 'consume' | 'cancel' | 'ack'> {
  return {
    assertQueue: channel.assertQueue.bind(channel),
    consume: channel.consume.bind(channel),
    cancel: channel.cancel.bind(channel),
    ack: channel.ack.bind(channel),
  }
}

/** Returns the socket, which the types of amqplib do not contain. */
function socketOf({ connection }: ChannelModel): Socket {
  return (connection as unknown as { stream: Socket }).stream
}
