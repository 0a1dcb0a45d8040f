import type { Draw } from './draw.ts'
import { errorOf, type Families, type Sample, thrown } from './family.ts'

/** Creates an undici error, which has its reason in the cause. */
function fetchFailed(draw: Draw, type: string, message: string, code: string): Sample {
  const cause = errorOf(draw, { type, message, fields: { code } })
  return thrown(draw, { type: 'TypeError', message: 'fetch failed', cause })
}

function notFound(draw: Draw, host: string): Sample {
  const message = `getaddrinfo ENOTFOUND ${host}`
  return thrown(draw, {
    message,
    fields: { code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname: host },
  })
}

function axios(draw: Draw, status: number): Sample {
  return thrown(draw, {
    type: 'AxiosError',
    message: `Request failed with status code ${status}`,
    fields: {
      code: 'ERR_BAD_REQUEST',
      status,
      config: { url: `https://api.example.com/v1/orders/${draw.uuid()}` },
    },
  })
}

function query(draw: Draw): string {
  return draw.pick(['', `?expand=items&limit=${draw.id()}`, `?cursor=${draw.base62(12)}`])
}

/** Creates an error of a wrapper that has the status only in its text. */
function withStatusText(draw: Draw, status: string, path: string): Sample {
  const url = `https://${draw.pick(['api-1', 'api-2', 'api-17'])}.example.com/v1/${path}${query(draw)}`
  const message = `Request failed with status code ${status}: GET ${url}`
  return thrown(draw, { type: 'HTTPError', message, own: ['fetchJson', 'http.ts'] })
}

function tooSlow(draw: Draw, dependency: string): Sample {
  const spent = draw.pick([
    `${draw.int(900, 9_999)} ms`,
    `${draw.int(1, 30)} s`,
    `${draw.int(1, 30)}.${draw.int(1, 9)}s`,
  ])
  const message = `timeout after ${spent} calling ${dependency} (attempt ${draw.int(1, 5)})`
  return thrown(draw, { type: 'DependencyTimeout', message, own: ['call', 'client.ts'] })
}

function grpc(draw: Draw, code: number, name: string, details: string): Sample {
  const fields = { code, details, metadata: {} }
  return thrown(draw, { message: `${code} ${name}: ${details}`, fields })
}

function aws(draw: Draw, type: string, message: string): Sample {
  const $metadata = { httpStatusCode: 400, requestId: draw.uuid(), attempts: draw.int(1, 3) }
  return thrown(draw, { type, message, fields: { $metadata, $fault: 'client' } })
}

export const NETWORK: Families = {
  'fetch: reset': (draw) => fetchFailed(draw, 'Error', 'read ECONNRESET', 'ECONNRESET'),
  'fetch: connect timeout': (draw) => {
    const tried = draw.several(1, 3, () => `${draw.ip()}:443`).join(', ')
    const message = `Connect Timeout Error (attempted addresses: ${tried}, timeout: 10000ms)`
    return fetchFailed(draw, 'ConnectTimeoutError', message, 'UND_ERR_CONNECT_TIMEOUT')
  },
  'dns: no payments': (draw) => notFound(draw, draw.host('payments')),
  'dns: no inventory': (draw) => notFound(draw, draw.host('inventory')),
  'http: hung up': (draw) =>
    thrown(draw, { message: 'socket hang up', fields: { code: 'ECONNRESET' } }),
  'axios: 404': (draw) => axios(draw, 404),
  'axios: 409': (draw) => axios(draw, 409),
  'wrapper: no order': (draw) => withStatusText(draw, '404 Not Found', `orders/${draw.ulid()}`),
  'wrapper: no customer': (draw) =>
    withStatusText(draw, '404 Not Found', `customers/cus_${draw.base62(14)}`),
  'wrapper: order conflict': (draw) =>
    withStatusText(draw, '409 Conflict', `orders/${draw.uuid()}`),
  'bare status: 404': (draw) =>
    thrown(draw, { message: `GET /v2/stock/${draw.id()}: HTTP 404`, own: ['stock', 'http.ts'] }),
  'bare status: 410': (draw) =>
    thrown(draw, { message: `GET /v2/stock/${draw.id()}: HTTP 410`, own: ['stock', 'http.ts'] }),
  'slow: inventory': (draw) => tooSlow(draw, 'inventory'),
  'slow: payments': (draw) => tooSlow(draw, 'payments'),
  'aws: throttled': (draw) =>
    aws(draw, 'ThrottlingException', `Rate exceeded (Request ID: ${draw.uuid()})`),
  'aws: not allowed': (draw) =>
    aws(
      draw,
      'AccessDenied',
      `User: arn:aws:sts::${draw.int(1e11, 9e11)}:assumed-role/orders/i-0${draw.hex(16)} is not authorized to perform: sqs:SendMessage on resource: arn:aws:sqs:eu-west-${draw.int(1, 3)}:${draw.int(1e11, 9e11)}:invoices`,
    ),
  'grpc: too late': (draw) =>
    grpc(
      draw,
      4,
      'DEADLINE_EXCEEDED',
      `Deadline exceeded after ${draw.int(1, 9)}.${draw.int(100, 999)}s,LB pick: 0.00${draw.int(1, 9)}s,remote_addr=${draw.ip()}:50051`,
    ),
  'grpc: unavailable': (draw) =>
    grpc(
      draw,
      14,
      'UNAVAILABLE',
      `No connection established. Last error: connect ECONNREFUSED ${draw.address()}`,
    ),
  'kafka: record too large': (draw) =>
    thrown(draw, {
      type: 'ProtocolError',
      message: `The request included a message larger than the max message size the server will accept: ${draw.int(1_048_577, 9_999_999)} bytes for orders-${draw.int(0, 47)}`,
    }),
  'rabbitmq: unknown tag': (draw) =>
    thrown(draw, {
      message: `Channel closed by server: 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - unknown delivery tag ${draw.id()}"`,
      fields: { code: 406 },
    }),
  'rabbitmq: no exchange': (draw) =>
    thrown(draw, {
      message: `Channel closed by server: 404 (NOT-FOUND) with message "NOT_FOUND - no exchange 'invoices' in vhost '/'"`,
      fields: { code: 404 },
    }),
}
