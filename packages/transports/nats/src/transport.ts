import { setTimeout as pause } from 'node:timers/promises'
import type { Decision } from '@redrive/core'
import {
  type Awaitable,
  type Capabilities,
  type Enactment,
  LOST,
  publishEvent,
  type Receiver,
  type Transport,
  type TransportGroup,
  type TransportNeeds,
} from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import { CAPABILITIES } from './capabilities.ts'
import { ManagedConnection } from './connection.ts'
import { declareForConsumer, managerOf } from './declare.ts'
import { type NatsDelivery, toDelivery } from './delivery.ts'
import { ended, HandOffs } from './enact.ts'
import { Intake } from './intake.ts'
import { Leases } from './leases.ts'
import { type NatsOptions, type ResolvedOptions, resolveOptions } from './options.ts'
import { respond } from './publish.ts'
import { type PulledConsumer, Puller, type PullLimits } from './pull.ts'
import { ServerClock } from './server-clock.ts'

/** 2 s for hand-offs in flight to finish: a server that does not answer must not block closing. */
const CLOSE_MS = 2_000

type Queue = Pick<PulledConsumer, 'stream' | 'consumer'>

/** 1 s between two tries to connect again. */
const RESTART_MS = 1_000

/** What exists from `open` on. */
interface Session {
  readonly connection: NatsConnection
  readonly handOffs: HandOffs
  readonly limits: { readonly fresh: PullLimits; readonly retries: PullLimits }
  readonly leases: { readonly fresh: Leases<NatsDelivery>; readonly retries: Leases<NatsDelivery> }
}

/** A transport that pulls the messages of one durable consumer, and the copies that wait for it. */
export class NatsTransport implements Transport<NatsDelivery> {
  readonly source: string
  readonly system = 'nats'
  readonly capabilities: Capabilities = CAPABILITIES
  readonly group: TransportGroup
  readonly #options: ResolvedOptions
  readonly #connection: ManagedConnection
  readonly #inFlight = new Set<Promise<Enactment>>()
  #session: Session | undefined
  #intake: Intake | undefined
  #pullers: readonly Puller[] = []
  #receiver: Receiver<NatsDelivery> | undefined
  #limit = 1
  #isPaused = false
  readonly #closing = new AbortController()
  #needs: TransportNeeds | undefined
  #isTroubled = false

  /** @internal */
  constructor(options: ResolvedOptions) {
    const { server, topology } = options
    const { stream, consumer } = topology
    const name = `${stream} ${consumer}`
    this.source = stream
    this.group =
      typeof server === 'string' ? { name: `nats ${server} ${name}` } : { name, owner: server }
    this.#options = options
    this.#connection = new ManagedConnection(options.connect, {
      onLost: (error) => this.#trouble(error),
      onRestored: () => this.#trouble(undefined),
      onClosed: (error) => void this.#restart(error),
    })
  }

  async open(needs?: TransportNeeds): Promise<void> {
    this.#needs = needs
    const connection = await this.#connection.open()
    const limits = await declareForConsumer(connection, this.#options)
    const leasesOf = ({ leaseMs }: PullLimits) =>
      new Leases<NatsDelivery>({
        leaseMs,
        renew: ({ message: { reply = '' } }, timeout) =>
          connection.request(reply, '+WPI', { timeout }),
        onEnded: (delivery) => this.#lose(delivery),
      })
    const leases = { fresh: leasesOf(limits.fresh), retries: leasesOf(limits.retries) }
    const { topology, confirmTimeoutMs } = this.#options
    this.#session = {
      connection,
      limits,
      leases,
      handOffs: new HandOffs({
        connection,
        clock: new ServerClock(await managerOf(connection), topology.retry.stream),
        topology,
        budgetBytes: this.capabilities.headerBudgetBytes,
        confirmTimeoutMs,
        deadLetterRetentionMs: needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY,
        handler: needs?.handler,
        isOwned: (delivery) => this.#leasesOf(delivery)?.has(delivery) ?? false,
      }),
    }
  }

  receive(receiver: Receiver<NatsDelivery>): void {
    if (this.#session === undefined) return
    this.#receiver = receiver
    const { connection, limits, leases } = this.#session
    const { topology } = this.#options
    const pullerOf = (kind: 'fresh' | 'retries', { stream, consumer }: Queue) =>
      new Puller(connection, { stream, consumer, ...limits[kind] }, (message, sentAfter) =>
        this.#deliver(leases[kind], message, sentAfter),
      )
    const fresh = pullerOf('fresh', topology)
    const retries = pullerOf('retries', topology.retry)
    this.#pullers = [fresh, retries]
    this.#intake = new Intake({
      fresh,
      retries,
      inFlight: () => leases.fresh.size + leases.retries.size,
      onProblem: (error) => this.#trouble(error),
    })
    this.#intake.setLimit(this.#limit)
    if (!this.#isPaused) this.#intake.start()
  }

  #deliver(leases: Leases<NatsDelivery>, message: Msg, sentAfter: number): void {
    const delivery = toDelivery(this.source, message)
    const { deliveries, sequence } = delivery.place
    // The server delivers it again, so the earlier delivery in this process is lost.
    if (deliveries > 1)
      leases
        .all()
        .filter(({ place }) => place.sequence === sequence)
        .forEach((one) => leases.end(one))
    // A message whose lease has ended is delivered again by the server.
    if (leases.add(delivery, sentAfter)) this.#receiver?.deliver(delivery)
  }

  limit(count: number): void {
    this.#limit = count
    this.#intake?.setLimit(count)
  }

  pause(): Awaitable<void> {
    this.#isPaused = true
    return this.#intake?.stop()
  }

  resume(): void {
    this.#isPaused = false
    this.#intake?.start()
  }

  enact(delivery: NatsDelivery, decision: Decision): Awaitable<Enactment> {
    const leases = this.#leasesOf(delivery)
    if (this.#session === undefined || leases === undefined || !leases.has(delivery)) return LOST
    const isFinal = decision.kind === 'settle' || decision.kind === 'drop'
    if (isFinal && delivery.replayId === undefined) {
      // Not confirmed: if it is lost with its connection, the server delivers the message again, as after a crash.
      leases.remove(delivery)
      const isSent = respond(delivery.message, '+ACK')
      this.#intake?.fill()
      return isSent ? ended(decision) : LOST
    }
    return this.#track(this.#handOff(delivery, decision, leases, this.#session.handOffs))
  }

  async #handOff(
    delivery: NatsDelivery,
    decision: Decision,
    leases: Leases<NatsDelivery>,
    handOffs: HandOffs,
  ): Promise<Enactment> {
    const enactment = await handOffs.enact(delivery, decision)
    if (enactment.kind !== 'done') return enactment
    leases.remove(delivery)
    if (decision.kind === 'retryAt') this.#intake?.lookIn(Math.max(0, decision.delayMs))
    if (decision.kind === 'pause') this.#intake?.lookIn(0)
    this.#intake?.fill()
    return enactment
  }

  #track(handOff: Promise<Enactment>): Promise<Enactment> {
    this.#inFlight.add(handOff)
    return handOff.finally(() => this.#inFlight.delete(handOff))
  }

  #leasesOf({ place }: NatsDelivery): Leases<NatsDelivery> | undefined {
    const leases = this.#session?.leases
    return place.stream === this.#options.topology.retry.stream ? leases?.retries : leases?.fresh
  }

  #lose(delivery: NatsDelivery): void {
    this.#receiver?.lost(delivery)
    this.#intake?.fill()
  }

  /** Continues on a new connection. The server delivers messages in flight again. */
  async #restart(error: unknown): Promise<void> {
    this.#trouble(error)
    const receiver = this.#receiver
    void this.#intake?.stop()
    for (const puller of this.#pullers) puller.close()
    const leases = Object.values(this.#session?.leases ?? {})
    this.#session = undefined
    for (const kind of leases) for (const delivery of kind.all()) kind.end(delivery)
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        await this.open(this.#needs)
        if (receiver !== undefined) this.receive(receiver)
        return this.#trouble(undefined)
      } catch {
        // The first problem is reported. It is tried again, as the client library does.
        await pause(RESTART_MS, undefined, { signal }).catch(() => undefined)
      }
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#isPaused = true
    const stopped = this.#intake?.stop() ?? Promise.resolve()
    const ending = [stopped, ...this.#inFlight]
    await withTimeout(Promise.allSettled(ending), CLOSE_MS, () => undefined)
    this.#receiver = undefined
    for (const puller of this.#pullers) puller.close()
    for (const leases of Object.values(this.#session?.leases ?? {})) returnAll(leases)
    this.#session = undefined
    await this.#connection.close()
  }

  /** Reports the first problem, and its end. */
  #trouble(error: unknown): void {
    const isTroubled = error !== undefined
    if (isTroubled === this.#isTroubled) return
    this.#isTroubled = isTroubled
    const at = Date.now()
    const { source } = this
    if (isTroubled) publishEvent({ type: 'connection_lost', at, source, error }, this)
    else publishEvent({ type: 'connection_restored', at, source }, this)
  }
}

/** Returns unfinished deliveries immediately, instead of after the end of their leases. */
function returnAll(leases: Leases<NatsDelivery>): void {
  for (const { message } of leases.all()) respond(message, '-NAK')
  leases.clear()
}

/** Creates a transport for a durable consumer of a JetStream stream. */
export function nats(options: NatsOptions): NatsTransport {
  return new NatsTransport(resolveOptions(options))
}
