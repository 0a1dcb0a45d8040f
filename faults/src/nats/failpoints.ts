import type { Connect } from '@redrive/nats'
import { connect, type Msg, type NatsConnection } from '@nats-io/transport-node'
import type { Failpoint, Point } from './consumer-options.ts'

type Request = NatsConnection['request']
type Subscribe = NatsConnection['subscribe']

const isAcknowledgement = (subject: string, payload: unknown) =>
  subject.startsWith('$JS.ACK.') && payload === '+ACK'
const isDeclaration = (subject: string) => /^\$JS\.API\.(STREAM|CONSUMER)\..*CREATE/.test(subject)

/**
 * Returns connections that kill their process at one point of a hand-off. They are between the
 * transport and the client library, so the transport runs unchanged.
 */
export function connectWith(
  servers: readonly string[],
  { point, subject: selected }: Failpoint,
  die: (point: Point) => never,
): Connect {
  const isMeant = (subject: string) =>
    selected !== undefined && new RegExp(`${selected}$`).test(subject)
  // Later requests belong to the selected copy.
  let hasBegun = selected === undefined
  const at = (here: Point) => {
    if (here === point) die(here)
  }

  /** Sends a request and dies when the server has it, before its response is known. */
  async function request(
    real: NatsConnection,
    kind: 'publish' | 'ack' | 'declare',
    ...args: Parameters<Request>
  ) {
    at(`${kind}.before` as Point)
    const response = real.request(...args)
    if (point === `${kind}.written`) {
      // The process dies anyway.
      response.catch(() => undefined)
      await real.flush()
      die(point)
    }
    const result = await response
    at((kind === 'declare' ? 'declare.after' : `${kind}.confirmed`) as Point)
    return result
  }

  function deliver(real: NatsConnection, message: Msg): Msg {
    const watched = Object.create(message) as Msg
    watched.respond = (payload) => {
      if (!hasBegun) return message.respond(payload)
      at('respond.before')
      const isSent = message.respond(payload)
      if (point === 'respond.written') void real.flush().then(() => die(point))
      return isSent
    }
    return watched
  }

  return async () => {
    const real = await connect({ servers: [...servers], maxReconnectAttempts: -1 })
    const watched: Partial<NatsConnection> = {
      request: (...args) => {
        const [subject, payload] = args
        if (isDeclaration(subject)) return request(real, 'declare', ...args)
        if (isMeant(subject)) {
          hasBegun = true
          return request(real, 'publish', ...args)
        }
        return hasBegun && isAcknowledgement(subject, payload)
          ? request(real, 'ack', ...args)
          : real.request(...args)
      },
      subscribe: (subject: string, options: Parameters<Subscribe>[1]) => {
        const callback = options?.callback
        if (callback === undefined) return real.subscribe(subject, options)
        return real.subscribe(subject, {
          ...options,
          callback: (error, message) => callback(error, deliver(real, message)),
        })
      },
    }
    return new Proxy(real, {
      get: (target, name) => {
        const value: unknown = Reflect.get(watched, name) ?? Reflect.get(target, name, target)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }
}
