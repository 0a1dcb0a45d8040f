/**
 * JSON-RPC 2.0 with one message per line, as the Model Context Protocol uses it over stdin and stdout:
 * https://modelcontextprotocol.io/specification/2025-11-25/basic
 */

/** Supported protocol versions, newest first. The parts used here are equal in all of them. */
export const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] as const

/** Error codes of JSON-RPC. */
export const RPC = {
  parse: -32_700,
  request: -32_600,
  method: -32_601,
  params: -32_602,
  internal: -32_603,
} as const

export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

type Id = string | number

export interface Request {
  /** Undefined: a notification, which gets no response. */
  readonly id: Id | undefined
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

/** Handles one request and returns its result. Rejects with an `RpcError` to return an error. */
export type Handle = (request: Request, signal: AbortSignal) => Promise<unknown>

export interface Wire {
  readonly lines: AsyncIterable<string>
  readonly write: (line: string) => void
  readonly signal: AbortSignal
}

/** 4 MiB. Requests to these tools are far smaller. */
const LINE_MAX = 4 * 1_048_576

/** Serves requests until the input ends, then waits for open requests. */
export async function serveLines({ lines, write, signal }: Wire, handle: Handle): Promise<void> {
  const open = new Map<Id, AbortController>()
  const pending = new Set<Promise<void>>()
  const send = (message: object) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const respond = async (request: Request, id: Id) => {
    const cancellation = new AbortController()
    open.set(id, cancellation)
    try {
      const result = await handle(request, AbortSignal.any([signal, cancellation.signal]))
      // A cancelled request gets no response.
      if (!cancellation.signal.aborted) send({ id, result })
    } catch (error) {
      if (!cancellation.signal.aborted) send({ id, error: errorOf(error) })
    } finally {
      open.delete(id)
    }
  }
  for await (const line of lines) {
    if (signal.aborted) break
    if (line.trim() === '') continue
    const read = requestOf(line)
    if (read instanceof RpcError) send({ id: null, error: errorOf(read) })
    else if (read.id !== undefined) {
      const response: Promise<void> = respond(read, read.id).finally(() => pending.delete(response))
      pending.add(response)
    } else if (read.method === 'notifications/cancelled') {
      open.get(read.params['requestId'] as Id)?.abort()
    }
  }
  await Promise.all(pending)
}

function errorOf(error: unknown): { readonly code: number; readonly message: string } {
  if (error instanceof RpcError) return { code: error.code, message: error.message }
  return { code: RPC.internal, message: error instanceof Error ? error.message : String(error) }
}

function requestOf(line: string): Request | RpcError {
  if (line.length > LINE_MAX)
    return new RpcError(
      RPC.request,
      `The message is too large: expected at most ${LINE_MAX} characters.`,
    )
  let message: unknown
  try {
    message = JSON.parse(line)
  } catch {
    return new RpcError(RPC.parse, 'Expected one JSON document per line.')
  }
  // Only one version of the protocol allowed several requests per line. No client needs it.
  if (!isRecord(message)) return new RpcError(RPC.request, 'Expected one request object.')
  const { jsonrpc, id, method, params } = message
  const isId = id === undefined || typeof id === 'string' || Number.isSafeInteger(id)
  const isParams = params === undefined || isRecord(params)
  if (jsonrpc !== '2.0' || typeof method !== 'string' || !isId || !isParams) {
    return new RpcError(RPC.request, 'Expected a JSON-RPC 2.0 request.')
  }
  return { id: id as Id | undefined, method, params: (params ?? {}) as Request['params'] }
}

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
