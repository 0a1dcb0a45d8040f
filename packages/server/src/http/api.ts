import type { Operation } from '@redrive/api'
import { type Route, ROUTES, isMutation } from '@redrive/api/internal'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Readable } from 'node:stream'
import type { Caller } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'
import type { Identity } from '../identity/port.ts'
import type { Operations } from '../operations/operations.ts'
import { etagOf } from '../operations/etag.ts'
import type { How, PiecewiseOperation } from '../operations/handlers.ts'
import { piecewiseJson, type PiecewiseOutput } from '../operations/piecewise.ts'
import { callerOf } from './caller.ts'
import { type Idempotency, type Outgoing, requestName } from './idempotency.ts'
import { type AnyInput, idempotencyKeyOf, inputOf } from './input.ts'
import { PLAN_BYTES } from './limits.ts'
import { eventsOf, linesOf, type Streams, watchPermissions } from './streams.ts'

export interface ApiDeps {
  readonly desk: Operations
  readonly idempotency: Idempotency
  readonly streams: Streams
  readonly identity: Pick<Identity, 'identify'>
  /** Time without progress after which the response with an original body ends, in ms. */
  readonly stallMs: number
}

type AnyHandler = (caller: Caller, input: AnyInput, how: How) => Promise<unknown>

/** Operations with a larger body limit. */
const BODY_LIMITS: { readonly [K in Operation]?: number } = { planReplay: PLAN_BYTES }

const PIECEWISE: ReadonlySet<Operation> = new Set<PiecewiseOperation>([
  'getPayload',
  'getSetAsidePayload',
])

/** Registers a route for every operation. The caller must add the authentication hook to the same scope. */
export function registerApi(app: FastifyInstance, parts: ApiDeps): void {
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

function handlerOf(operation: Operation, route: Route, parts: ApiDeps): RouteHandler {
  const read = inputOf(route)
  const handle = parts.desk.handlers[operation] as AnyHandler
  if (route.stream !== undefined) return streamHandler(route, read, handle, parts)
  const respond = async (caller: Caller, input: AnyInput, how: How): Promise<Outgoing> => {
    // Removes fields that the schema does not contain.
    const value: unknown = route.output.parse(await handle(caller, input, how))
    const text = value === undefined ? undefined : JSON.stringify(value)
    return { status: route.status ?? 200, text, etag: etagOf(operation, value) }
  }
  if (!isMutation(route)) {
    return async (request, reply) => {
      const input = read(request)
      const how = { request: undefined, signal: NEVER }
      if (!PIECEWISE.has(operation)) {
        return send(reply, await respond(callerOf(request), input, how))
      }
      const output = (await handle(callerOf(request), input, how)) as AnyPiecewise
      destroyWhenStalled(reply, parts)
      destroyWhenDenied(request, reply, parts)
      return sendPieces(reply, output, route)
    }
  }
  return async (request, reply) => {
    const key = idempotencyKeyOf(request)
    const input = read(request)
    const caller = callerOf(request)
    const mutation = { caller, key, operation, request: input }
    const how = { request: requestName(mutation), signal: NEVER }
    const { isReplayed, ...outgoing } = await parts.idempotency.once(mutation, () =>
      respond(caller, input, how),
    )
    if (isReplayed) reply.header('idempotency-replayed', 'true')
    return send(reply, outgoing)
  }
}

/** A signal that never fires: a mutation is completed even if the client disconnects. */
const NEVER: AbortSignal = new AbortController().signal

const JSON_TYPE = 'application/json; charset=utf-8'

function send(reply: FastifyReply, { status, text, etag }: Outgoing): FastifyReply {
  if (etag !== undefined) reply.header('etag', etag)
  reply.code(status)
  return text === undefined ? reply.send() : reply.type(JSON_TYPE).send(text)
}

type AnyPiecewise = PiecewiseOutput<{ bytes: string; text?: string }>

/** Sends an output in pieces. The client decides the pace: a piece is read after the one before was sent. */
function sendPieces(reply: FastifyReply, output: AnyPiecewise, route: Route): FastifyReply {
  // Removes fields that the schema does not contain.
  const { bytes: _, ...fields } = route.output.parse({ ...output.fields, bytes: '' }) as {
    bytes: string
  }
  const text = piecewiseJson({ fields, pieces: output.pieces, withText: output.withText })
  return reply.type(JSON_TYPE).send(Readable.from(text))
}

/**
 * Destroys the connection of a client that stops reading: after `stallMs` without progress, and after `END_MS` when the
 * server stops. Otherwise the client would hold a transaction of the database and delay the shutdown.
 */
function destroyWhenStalled({ raw }: FastifyReply, { streams, stallMs }: ApiDeps): void {
  const { stopping } = streams
  // Node.js calls it when the system accepted no byte of the response in this time.
  raw.setTimeout(stopping.aborted ? END_MS : stallMs, () => raw.destroy())
  const shorten = () => raw.setTimeout(END_MS)
  stopping.addEventListener('abort', shorten, { once: true })
  raw.once('close', () => stopping.removeEventListener('abort', shorten))
}

/** Destroys the connection when the caller has lost a permission since. A slow client could otherwise read for hours. */
function destroyWhenDenied(
  request: FastifyRequest,
  { raw }: FastifyReply,
  { identity }: ApiDeps,
): void {
  // The client disconnected while the body was opened, so the `close` event has already fired.
  if (raw.destroyed) return
  const endChecks = watchPermissions(stillAllowed(request, identity), () => raw.destroy())
  raw.once('close', endChecks)
}

const STREAM_TYPES = {
  events: 'text/event-stream; charset=utf-8',
  lines: 'application/jsonl; charset=utf-8',
} as const

function streamHandler(
  { stream = 'lines', output }: Route,
  read: (request: FastifyRequest) => AnyInput,
  handle: AnyHandler,
  { streams, identity }: ApiDeps,
): RouteHandler {
  return async (request, reply) => {
    const input = read(request)
    const caller = callerOf(request)
    const closed = new AbortController()
    const slot = streams.take(caller, closed.signal, stillAllowed(request, identity))
    const keepOpen = destroyAfterEnd(reply, slot.signal)
    const end = () => {
      keepOpen()
      closed.abort()
      slot.leave()
    }
    // Fires also when the response fails before it starts and when the client disconnects.
    reply.raw.once('close', end)
    // The client disconnected during authentication, so the `close` event has already fired.
    if (reply.raw.destroyed) {
      end()
      return reply.hijack()
    }
    const how = { request: undefined, signal: slot.signal }
    const values = await handle(caller, input, how).catch((error: unknown) => {
      end()
      throw error
    })
    const checked = parseEach(values as AsyncIterable<unknown>, (value) => output.parse(value))
    const text = stream === 'events' ? eventsOf(checked) : linesOf(checked)
    // Stops proxies from buffering the stream, which would delay progress updates.
    reply.type(STREAM_TYPES[stream]).header('x-accel-buffering', 'no')
    return reply.send(Readable.from(text))
  }
}

/** Returns a check whether the caller of a request still has the same permissions. */
function stillAllowed(
  request: FastifyRequest,
  identity: ApiDeps['identity'],
): () => Promise<boolean> {
  const caller = callerOf(request)
  const { headers, cookies } = request
  return async () => isSame(caller, await identity.identify({ headers, cookies, isPassive: true }))
}

/** Whether the caller still has the same permissions. If not, the client must connect again, which checks them. */
const isSame = (before: Caller, now: Caller | undefined) =>
  now !== undefined && JSON.stringify(now.grants) === JSON.stringify(before.grants)

/** 1 s: a stream with a reading client ends within this time. */
const END_MS = 1_000

/**
 * Destroys the connection if the stream has not ended shortly after the signal. A client that stays connected
 * without reading would otherwise block its slot and the shutdown. Returns a function that prevents it.
 */
function destroyAfterEnd(reply: FastifyReply, signal: AbortSignal): () => void {
  let timer: NodeJS.Timeout | undefined
  const destroyLater = () => {
    timer = setTimeout(() => reply.raw.destroy(), END_MS).unref()
  }
  signal.addEventListener('abort', destroyLater, { once: true })
  return () => {
    signal.removeEventListener('abort', destroyLater)
    clearTimeout(timer)
  }
}

async function* parseEach<T>(
  values: AsyncIterable<unknown>,
  parse: (value: unknown) => T,
): AsyncGenerator<T, void, undefined> {
  for await (const value of values) yield parse(value)
}

export const noSuchRoute = (): ProblemError =>
  new ProblemError('not_found', 'This path does not exist. See /api/reference for all operations.')
