import { type Operation, type Route, ROUTES, isMutation } from '@redrive/api'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Readable } from 'node:stream'
import type { Caller } from '../access/caller.ts'
import { Refusal } from '../access/refusal.ts'
import type { Desk } from '../desk/desk.ts'
import { etagOf } from '../desk/etag.ts'
import type { How } from '../desk/handlers.ts'
import { callerOf } from './caller.ts'
import { type Idempotency, type Outgoing, requestName } from './idempotency.ts'
import { type AnyInput, idempotencyKeyOf, inputOf } from './input.ts'
import { PLAN_BYTES } from './limits.ts'
import { eventsOf, linesOf, type Streams } from './streams.ts'

export interface ApiParts {
  readonly desk: Desk
  readonly idempotency: Idempotency
  readonly streams: Streams
}

type AnyHandler = (caller: Caller, input: AnyInput, how: How) => Promise<unknown>

/** What is larger than the rest. */
const BODY_LIMITS: { readonly [K in Operation]?: number } = { planReplay: PLAN_BYTES }

/** A route for every row of the table, and nothing else. Whoever calls has put authentication in front. */
export function registerApi(app: FastifyInstance, parts: ApiParts): void {
  for (const [operation, route] of Object.entries(ROUTES) as [Operation, Route][]) {
    const bodyLimit = BODY_LIMITS[operation]
    app.route({
      method: route.method,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),
      config: { operation },
      ...(bodyLimit === undefined ? {} : { bodyLimit }),
      handler: handlerOf(operation, route, parts),
    })
  }
}

type RouteHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>

function handlerOf(operation: Operation, route: Route, parts: ApiParts): RouteHandler {
  const read = inputOf(route)
  const handle = parts.desk.handlers[operation] as AnyHandler
  if (route.stream !== undefined) return streamHandler(route, read, handle, parts)
  const answer = async (caller: Caller, input: AnyInput, how: How): Promise<Outgoing> => {
    // Only what the table names goes out.
    const value: unknown = route.answer.parse(await handle(caller, input, how))
    const text = value === undefined ? undefined : JSON.stringify(value)
    return { status: route.status ?? 200, text, etag: etagOf(operation, value) }
  }
  if (!isMutation(route)) {
    return async (request, reply) => {
      const input = read(request)
      return send(
        reply,
        await answer(callerOf(request), input, { request: undefined, signal: NEVER }),
      )
    }
  }
  return async (request, reply) => {
    const key = idempotencyKeyOf(request)
    const input = read(request)
    const caller = callerOf(request)
    const asked = { caller, key, operation, request: input }
    const how = { request: requestName(asked), signal: NEVER }
    const { isReplayed, ...outgoing } = await parts.idempotency.once(asked, () =>
      answer(caller, input, how),
    )
    if (isReplayed) reply.header('idempotency-replayed', 'true')
    return send(reply, outgoing)
  }
}

/** A mutation that has begun is finished, whether or not anybody still waits for it. */
const NEVER: AbortSignal = new AbortController().signal

function send(reply: FastifyReply, { status, text, etag }: Outgoing): FastifyReply {
  if (etag !== undefined) reply.header('etag', etag)
  reply.code(status)
  return text === undefined
    ? reply.send()
    : reply.type('application/json; charset=utf-8').send(text)
}

const STREAM_TYPES = {
  events: 'text/event-stream; charset=utf-8',
  lines: 'application/jsonl; charset=utf-8',
} as const

function streamHandler(
  { stream = 'lines', answer }: Route,
  read: (request: FastifyRequest) => AnyInput,
  handle: AnyHandler,
  { streams }: ApiParts,
): RouteHandler {
  return async (request, reply) => {
    const input = read(request)
    const caller = callerOf(request)
    const closed = new AbortController()
    const place = streams.take(caller, closed.signal)
    const keep = cutWhenOver(reply, place.signal)
    const end = () => {
      keep()
      closed.abort()
      place.leave()
    }
    // Also when it ends before it began, and when whoever looks goes away.
    reply.raw.once('close', end)
    // They went while it was looked up who they are, and are not heard of again.
    if (reply.raw.destroyed) {
      end()
      return reply.hijack()
    }
    const how = { request: undefined, signal: place.signal }
    const answers = await handle(caller, input, how).catch((error: unknown) => {
      end()
      throw error
    })
    const checked = parsed(answers as AsyncIterable<unknown>, (value) => answer.parse(value))
    const text = stream === 'events' ? eventsOf(checked) : linesOf(checked)
    // Proxies that collect before they send would make a progress bar jump.
    reply.type(STREAM_TYPES[stream]).header('x-accel-buffering', 'no')
    return reply.send(Readable.from(text))
  }
}

/** 1 s: what ends by itself when it is told to has ended by then. */
const LAST_WORDS_MS = 1_000

/**
 * Whoever stopped reading without going away would hold the place and the server, because what is told to end
 * waits to be read. Answers what keeps it from being cut.
 */
function cutWhenOver(reply: FastifyReply, signal: AbortSignal): () => void {
  let timer: NodeJS.Timeout | undefined
  const cut = () => {
    timer = setTimeout(() => reply.raw.destroy(), LAST_WORDS_MS).unref()
  }
  signal.addEventListener('abort', cut, { once: true })
  return () => {
    signal.removeEventListener('abort', cut)
    clearTimeout(timer)
  }
}

async function* parsed<T>(
  values: AsyncIterable<unknown>,
  parse: (value: unknown) => T,
): AsyncGenerator<T, void, undefined> {
  for await (const value of values) yield parse(value)
}

export const noSuchRoute = (): Refusal =>
  new Refusal(
    'not_found',
    'There is nothing at this address. See /api/reference for what there is.',
  )
