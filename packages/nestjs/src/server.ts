import { Logger } from '@nestjs/common'
import { type CustomTransportStrategy, Server } from '@nestjs/microservices'
import { type Duration, RedriveError } from '@redrive/core'
import { isRecord } from '@redrive/core/internal'
import {
  type AttemptContext,
  type Consumer,
  type ConsumeOptions,
  consume,
  type Message,
  type Transport,
} from '@redrive/runtime'
import { lastValueFrom } from 'rxjs'
import { RedriveContext } from './context.ts'

/** The pattern and the data that a message contains. */
export interface EventPacket {
  readonly pattern: unknown
  readonly data: unknown
}

/** The options of `RedriveServer`. */
export interface RedriveServerOptions {
  /** One queue, topic or table. It has the events of all patterns. */
  readonly transport: Transport
  /** The options of the consumer. Default: none. */
  readonly consume?: ConsumeOptions
  /**
   * Returns the pattern and the data of a message. Default: `pattern` and `data` of the body, as clients of NestJS
   * write them. For other bodies: the type of the message or else its source, and the body.
   */
  readonly packet?: (message: Message) => EventPacket
  /** Maximum time to stop. Default '25s'. */
  readonly drain?: Duration
}

/**
 * A transport strategy of NestJS: a message is settled when its `@EventPattern` handlers have finished, and an error
 * is classified, retried or dead-lettered. Pass it as `strategy` to `connectMicroservice` or `createMicroservice`.
 */
export class RedriveServer extends Server implements CustomTransportStrategy {
  /** The caller gets failures, so NestJS does not also log them. */
  override readonly propagatesEventHandlerErrors = true
  readonly #options: RedriveServerOptions
  readonly #log = new Logger('RedriveServer')
  #consumer: Consumer | undefined
  #hasWarned = false

  constructor(options: RedriveServerOptions) {
    super()
    this.#options = options
  }

  /** NestJS calls it. Starts the consumer. */
  async listen(callback: (error?: unknown) => void): Promise<void> {
    try {
      this.#refuseRequests()
      this.#consumer = await consume(
        this.#options.transport,
        (message, context) => this.#dispatch(message, context),
        { logger: this.#log, ...this.#options.consume },
      )
    } catch (error) {
      callback(error)
      return
    }
    callback()
  }

  /** NestJS calls it. Running handlers finish, other messages return to the broker. */
  async close(): Promise<void> {
    const { drain } = this.#options
    await this.#consumer?.stop(drain === undefined ? {} : { drain })
  }

  /** Returns the consumer, for its health and statistics. */
  unwrap<T = Consumer>(): T {
    if (this.#consumer === undefined) {
      throw new Error(
        'The consumer has not started. Call listen() or startAllMicroservices() first.',
      )
    }
    return this.#consumer as T
  }

  on(): never {
    throw new Error('RedriveServer emits no events. Use onEvent of @redrive/runtime.')
  }

  async #dispatch(message: Message, attempt: AttemptContext): Promise<void> {
    const { pattern, data } = (this.#options.packet ?? packetOf)(message)
    const name = typeof pattern === 'string' ? pattern : JSON.stringify(pattern)
    const handler = this.getHandlerByPattern(name)
    if (handler === null) throw noHandler(name, [...this.getHandlers().keys()])
    const context = new RedriveContext([message, attempt, name])
    try {
      const result: unknown = await handler(data, context)
      await lastValueFrom(this.transformToObservable(result), { defaultValue: undefined })
    } catch (error) {
      this.#warnOfReplaced(error)
      throw error
    }
  }

  /** A response to `@MessagePattern` needs a caller that waits, and a retry may take hours. */
  #refuseRequests(): void {
    const requests = [...this.getHandlers()].filter(([, { isEventHandler }]) => !isEventHandler)
    if (requests.length === 0) return
    const patterns = requests.map(([pattern]) => `"${pattern}"`).join(', ')
    throw new Error(
      `RedriveServer has no responses, so it cannot serve @MessagePattern: ${patterns}. Use @EventPattern, or another transport for these handlers.`,
    )
  }

  #warnOfReplaced(error: unknown): void {
    if (this.#hasWarned || error instanceof Error || !isRecord(error)) return
    if (error['message'] !== 'Internal server error') return
    this.#hasWarned = true
    this.#log.warn(
      'NestJS replaced an error by "Internal server error", so its cause cannot be classified. Call useGlobalFilters(new RedriveExceptionFilter()) on the microservice.',
    )
  }
}

function packetOf({ body, type, source }: Message): EventPacket {
  if (isRecord(body) && 'pattern' in body) {
    if ('id' in body) throw isRequest(body['pattern'])
    return { pattern: body['pattern'], data: body['data'] }
  }
  return { pattern: type ?? source, data: body }
}

/** A retry would not help, so it becomes a dead letter. It can be replayed after the deployment of a handler. */
const noHandler = (pattern: string, known: readonly string[]) =>
  new RedriveError(
    'PAYLOAD_INVALID',
    `There is no @EventPattern handler for "${pattern}". Patterns with a handler: ${known.join(', ')}`,
  )

const isRequest = (pattern: unknown) =>
  new RedriveError(
    'PAYLOAD_INVALID',
    `The message is a request for ${JSON.stringify(pattern)}, and RedriveServer has no responses. Send it with emit().`,
  )
