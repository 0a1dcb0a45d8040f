import { setTimeout as pause } from 'node:timers/promises'
import type { TransportFault } from '@redrive/testing'
import { connect, type Msg, type NatsConnection } from '@nats-io/transport-node'

type Request = NatsConnection['request']
type Subscribe = NatsConnection['subscribe']

const isCopy = (subject: string) => subject.startsWith('redrive.')
const isAnswer = (subject: string) => subject.startsWith('$JS.ACK.')

/** The connection of one transport to the server, with the faults of the contract. */
export class Link {
  readonly #url: string
  readonly #side: NatsConnection
  readonly #fault: TransportFault | undefined
  readonly #isRefusing: () => boolean
  /** Deliveries that are not acknowledged, by the subject of their acknowledgement. */
  readonly #open = new Set<string>()
  #real: NatsConnection | undefined
  #isAlive = true
  /** Deliveries whose answers and renewals are lost. */
  #cut: ReadonlySet<string> = new Set()
  #isResponseDropped = false

  constructor(
    url: string,
    side: NatsConnection,
    fault: TransportFault | undefined,
    isRefusing: () => boolean,
  ) {
    this.#url = url
    this.#side = side
    this.#fault = fault
    this.#isRefusing = isRefusing
  }

  async open(): Promise<NatsConnection> {
    const real = await connect({ servers: this.#url, maxReconnectAttempts: -1 })
    this.#real = real
    const watched: Partial<NatsConnection> = {
      request: (subject, payload, options) => this.#request(real, subject, payload, options),
      subscribe: (subject, options) => this.#subscribe(real, subject, options),
    }
    return new Proxy(real, {
      get: (target, name) => {
        const value: unknown = Reflect.get(watched, name) ?? Reflect.get(target, name, target)
        return typeof value === 'function' ? (value.bind(target) as unknown) : value
      },
    })
  }

  /** Ends the process like `kill -9`. The server notices it when the leases end; they are ended here to save time. */
  async die(): Promise<void> {
    this.#isAlive = false
    await this.#real?.close()
    await this.#returnAll()
  }

  /** Loses the answers and renewals of all deliveries in flight, until their leases have ended. */
  async loseLeases(leaseMs: number): Promise<void> {
    this.#cut = new Set(this.#open)
    await pause(leaseMs + MARGIN_MS)
    for (const reply of this.#cut) this.#open.delete(reply)
  }

  dropResponse(): void {
    this.#isResponseDropped = true
  }

  async #returnAll(): Promise<void> {
    for (const reply of this.#open) this.#side.publish(reply, '-NAK')
    this.#open.clear()
    await this.#side.flush()
  }

  #subscribe(real: NatsConnection, subject: string, options: Parameters<Subscribe>[1]) {
    const callback = options?.callback
    return real.subscribe(subject, {
      ...options,
      ...(callback === undefined
        ? {}
        : {
            callback: (error, message) =>
              this.#deliver(message, (one) => void callback(error, one)),
          }),
    })
  }

  #deliver(message: Msg, deliver: (message: Msg) => void): void {
    if (!this.#isAlive) return
    const { reply = '' } = message
    if (isAnswer(reply)) this.#open.add(reply)
    const watched = Object.create(message) as Msg
    watched.respond = (payload) => {
      if (!this.#isAlive || this.#cut.has(reply)) return true
      this.#open.delete(reply)
      return message.respond(payload)
    }
    deliver(watched)
  }

  async #request(real: NatsConnection, ...[subject, payload, options]: Parameters<Request>) {
    if (!this.#isAlive) throw new Error('This process has crashed.')
    if (this.#cut.has(subject)) throw new Error('timeout')
    const isFinal = isAnswer(subject) && payload === '+ACK'
    const isHandOff = isCopy(subject) || isFinal
    if (isCopy(subject) && this.#fault === 'copies_refused' && this.#isRefusing())
      throw new Error('timeout')
    const response = await real.request(subject, payload, options)
    if (isFinal) this.#open.delete(subject)
    if (isHandOff && this.#fault === 'dies_halfway') await this.die()
    if (!this.#isAlive) throw new Error('This process has crashed.')
    if (isCopy(subject) && this.#isResponseDropped) {
      this.#isResponseDropped = false
      throw new Error('timeout')
    }
    return response
  }
}

/** 300 ms: the server checks leases a little later. */
const MARGIN_MS = 300
