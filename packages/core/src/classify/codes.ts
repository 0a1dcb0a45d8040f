import type { RedriveErrorCode } from '../errors.ts'
import type { FailureClass } from '../failure.ts'

/** The meaning of a code. `timeout` is transient, and the failure is marked as timed out. */
export type Ruling = FailureClass | 'timeout'

export type Table = ReadonlyMap<string, Ruling>

export function table(rows: Readonly<Partial<Record<Ruling, readonly string[]>>>): Table {
  const entries = Object.entries(rows) as readonly (readonly [Ruling, readonly string[]])[]
  return new Map(entries.flatMap(([ruling, codes]) => codes.map((code) => [code, ruling] as const)))
}

/**
 * String codes of Node, undici and axios.
 *
 * Left out on purpose, so they are unknown:
 * - ENOENT, EACCES, EPERM, EEXIST, EINVAL: facts about local files, or a bug. No dependency refused.
 * - TLS certificate codes: an expired certificate is an outage, not a reason to give up every message.
 * - UND_ERR_INVALID_ARG and other misuse codes: bugs.
 * - HPE_* and UND_ERR_HTTP_PARSER: the peer or a proxy sent invalid HTTP, which may pass.
 */
export const CODES: Table = table({
  timeout: [
    'ETIMEDOUT',
    'ESOCKETTIMEDOUT',
    // The spelling of dns.resolve and related functions.
    'ETIMEOUT',
    // axios reports its own timeout with this code by default.
    'ECONNABORTED',
    'ERR_SOCKET_CONNECTION_TIMEOUT',
    'UND_ERR_CONNECT_TIMEOUT',
    'UND_ERR_HEADERS_TIMEOUT',
    'UND_ERR_BODY_TIMEOUT',
  ],
  transient: [
    // No process listens, or the connection broke: restarts, deployments, failovers.
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ENOTCONN',
    'ERR_STREAM_PREMATURE_CLOSE',
    'ERR_HTTP2_STREAM_ERROR',
    'ERR_HTTP2_STREAM_CANCEL',
    'ERR_HTTP2_SESSION_ERROR',
    'ERR_HTTP2_GOAWAY_SESSION',
    'UND_ERR_SOCKET',
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    'UND_ERR_INFO',
    'UND_ERR_BPL_MISSING_UPSTREAM',
    'ERR_NETWORK',
    // The network has no route now.
    'EHOSTUNREACH',
    'EHOSTDOWN',
    'ENETUNREACH',
    'ENETDOWN',
    'ENETRESET',
    // The resolver failed, or a service name is missing while its pods restart. A name that is always
    // wrong fails every message: the breaker handles that, so it is no reason to give up one message.
    'EAI_AGAIN',
    'ENOTFOUND',
    'ESERVFAIL',
    // This machine or disk ran out of a resource that others will release.
    'EADDRINUSE',
    'EADDRNOTAVAIL',
    'EMFILE',
    'ENFILE',
    'ENOBUFS',
    'ENOMEM',
    'ENOSPC',
    'EDQUOT',
    'EAGAIN',
    'EBUSY',
    'EINTR',
    'EIO',
    // Cancelled on our side: the work was not done, and the message has no fault.
    'ABORT_ERR',
    'ERR_CANCELED',
    'UND_ERR_ABORT',
    'UND_ERR_ABORTED',
    'UND_ERR_CLOSED',
    'UND_ERR_DESTROYED',
  ],
  // The response exceeds a limit, and will again.
  integration: ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW'],
})

const REDRIVE_RULINGS: Readonly<Record<RedriveErrorCode, Ruling>> = {
  ATTEMPT_TIMEOUT: 'timeout',
  // The message has no fault. Another process, or this one later, can handle it.
  STOPPING: 'transient',
  CLOSED: 'transient',
  DLQ_CLOSED: 'transient',
  DLQ_FULL: 'transient',
  OUTCOME_UNKNOWN: 'transient',
  DELIVERY_LOST: 'transient',
  EVENT_LOST: 'transient',
  REPLAY_FAILED: 'transient',
  UNREACHABLE: 'transient',
  PAYLOAD_INVALID: 'schema',
  CONFLICT: 'business',
  NEEDS_ANOTHER_PERSON: 'business',
  // Other messages can be routed, so the broker works.
  REFUSED: 'integration',
  UNROUTABLE: 'integration',
  KEY_CONFLICT: 'integration',
  // Mistakes in the program. They say nothing about the message.
  POLICY_INVALID: 'unknown',
  CAPABILITY_MISSING: 'unknown',
  TOPOLOGY_MISMATCH: 'unknown',
}
export const REDRIVE_CODES: Table = new Map(Object.entries(REDRIVE_RULINGS))

/**
 * Postgres and MySQL: the whole SQLSTATE when it has a row, otherwise its class (the first two characters).
 * https://www.postgresql.org/docs/current/errcodes-appendix.html
 */
export const SQLSTATES: Table = table({
  timeout: [
    // statement_timeout, and a cancel by an operator: the database was too slow.
    '57014',
    // transaction_timeout
    '25P04',
  ],
  transient: [
    '08', // connection
    '40', // rolled back: serialisation failure, deadlock
    '53', // out of disk, memory or connections
    '58', // input/output error of the server
    '57P01', // shut down by an administrator
    '57P02', // shut down by a crash
    '57P03', // still starting
    '57P05', // idle session closed
    '25P03', // idle transaction closed
    '25006', // read only: we reached a standby during a failover
    '55P03', // lock not available
    '55006', // object in use
  ],
  // A value the column cannot store: the payload has the wrong shape and always will.
  schema: ['22'],
  // Constraints are rules of the domain, written in the database.
  business: ['23', '40002', '44', '45', 'P0001'],
  // The database understood and refused: SQL that does not match its tables, no permission, no such database.
  integration: ['0A', '28', '3D', '3F', '42', '54', '57P04'],
})

/** gRPC status by number: its name, and what it means. https://grpc.io/docs/guides/status-codes/ */
export const GRPC_STATUSES: readonly (readonly [name: string, ruling: Ruling])[] = [
  ['OK', 'unknown'],
  ['CANCELLED', 'transient'],
  ['UNKNOWN', 'unknown'],
  ['INVALID_ARGUMENT', 'integration'],
  ['DEADLINE_EXCEEDED', 'timeout'],
  ['NOT_FOUND', 'integration'],
  ['ALREADY_EXISTS', 'integration'],
  ['PERMISSION_DENIED', 'integration'],
  ['RESOURCE_EXHAUSTED', 'transient'],
  ['FAILED_PRECONDITION', 'integration'],
  // A concurrency conflict. The gRPC guide recommends a retry at a higher level, which is Redrive.
  ['ABORTED', 'transient'],
  ['OUT_OF_RANGE', 'integration'],
  ['UNIMPLEMENTED', 'integration'],
  // Like HTTP 500. A broken HTTP/2 stream also becomes this status.
  ['INTERNAL', 'transient'],
  ['UNAVAILABLE', 'transient'],
  ['DATA_LOSS', 'integration'],
  ['UNAUTHENTICATED', 'integration'],
]

/** The codes that the AWS SDK retries. Most arrive with status 400, so they must be checked before it. */
export const AWS_CODES: Table = table({
  timeout: ['RequestTimeout', 'RequestTimeoutException'],
  transient: [
    'BandwidthLimitExceeded',
    'EC2ThrottledException',
    'LimitExceededException',
    'PriorRequestNotComplete',
    'ProvisionedThroughputExceeded',
    'ProvisionedThroughputExceededException',
    'RequestLimitExceeded',
    'RequestThrottled',
    'RequestThrottledException',
    'SlowDown',
    'ThrottledException',
    'Throttling',
    'ThrottlingError',
    'ThrottlingException',
    'TooManyRequestsException',
    'TransactionConflict',
    'TransactionConflictException',
    'TransactionInProgressException',
  ],
})

/** HTTP status ranges, both ends included. The first matching row wins. */
export const HTTP_STATUSES: readonly (readonly [min: number, max: number, ruling: Ruling])[] = [
  // The server waited for our request, or a gateway waited for the server's response.
  [408, 408, 'timeout'],
  [504, 504, 'timeout'],
  // Too early, and too many requests.
  [425, 425, 'transient'],
  [429, 429, 'transient'],
  [400, 499, 'integration'],
  [500, 599, 'transient'],
]

/**
 * Errors without a code, by the exact message of the library that throws them. Only whole messages match:
 * a business error that mentions a connection is not a connection error.
 */
export const MESSAGES: Table = table({
  transient: [
    // pg: its connection is closed, or its pool is exhausted
    'Connection terminated',
    'Connection terminated unexpectedly',
    'Client has encountered a connection error and is not queryable',
    'timeout exceeded when trying to connect',
    // ioredis
    'Connection is closed.',
    "Stream isn't writeable and enableOfflineQueue options is false",
    // Redis has as many clients as it accepts.
    'ERR max number of clients reached',
    // mysql2
    "Can't add new command when connection is in closed state",
    'No connections available.',
    'Pool is closed.',
    'Queue limit reached.',
    // kafkajs
    'The producer is disconnected',
    // amqplib
    'channel closed',
    'Channel ended, no reply will be forthcoming',
    'Heartbeat timeout',
    'Socket closed abruptly during opening handshake',
    'Unexpected close',
  ],
  timeout: [
    'Connection terminated due to connection timeout',
    'Query read timeout',
    'timeout expired',
    // amqplib
    'connect ETIMEDOUT',
    // ioredis
    'Command timed out',
  ],
})

/** Starts of messages, for errors whose text ends with details. amqplib gives a rejected password no code. */
export const MESSAGE_STARTS: readonly (readonly [start: string, ruling: Ruling])[] = [
  ['Handshake terminated by server: 403 (ACCESS-REFUSED)', 'integration'],
]
