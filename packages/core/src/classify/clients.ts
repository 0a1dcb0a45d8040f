/** Tables for the errors of databases, brokers and their clients. docs/reference/classification.md lists real situations. */
import { type Ruling, type Table, table } from './codes.ts'

/**
 * String codes of MySQL and Prisma. Other errors of MySQL are known by their SQLSTATE. The rows here have none that
 * fits: HY000 means "general error", and 42000 also covers limits.
 *
 * Left out on purpose: Prisma's P2025 (no such record). The record may arrive with a later message.
 */
export const CLIENT_CODES: Table = table({
  timeout: ['ER_QUERY_TIMEOUT', 'PROTOCOL_SEQUENCE_TIMEOUT', 'P1002', 'P1008'],
  transient: [
    'ER_LOCK_WAIT_TIMEOUT',
    'ER_QUERY_INTERRUPTED',
    'ER_CLIENT_INTERACTION_TIMEOUT',
    'ER_TOO_MANY_USER_CONNECTIONS',
    'ER_USER_LIMIT_REACHED',
    'ER_DISK_FULL',
    'ER_RECORD_FILE_FULL',
    'ER_OUTOFMEMORY',
    // Read-only: we reached a replica during a failover.
    'ER_OPTION_PREVENTS_STATEMENT',
    'ER_READ_ONLY_MODE',
    'PROTOCOL_CONNECTION_LOST',
    'POOL_NONEONLINE',
    'P1001', // unreachable
    'P1017', // connection closed
    'P2024', // pool exhausted
    'P2028', // no connection for the transaction, or it took too long
    'P2034', // write conflict or deadlock
    'P2037', // too many connections
  ],
  schema: [
    'ER_TRUNCATED_WRONG_VALUE_FOR_FIELD',
    'P2000', // value too long
    'P2005',
    'P2006',
    'P2007', // value of another type
    'P2020', // out of range
  ],
  business: [
    'ER_CHECK_CONSTRAINT_VIOLATED',
    'ER_NO_DEFAULT_FOR_FIELD',
    'P2002', // unique constraint
    'P2003', // foreign key
    'P2004',
    'P2011', // null constraint
  ],
  integration: ['P1000', 'P1003', 'P1010', 'P2021', 'P2022'],
})

/** Kinds of errors in which an adapter of Prisma has no code of the database. */
export const PRISMA_KINDS: Table = table({
  timeout: ['SocketTimeout'],
  transient: ['ConnectionClosed', 'DatabaseNotReachable', 'TooManyConnections'],
})

/** Error codes of a MongoDB server: number, name and meaning. https://www.mongodb.com/docs/manual/reference/error-codes/ */
const MONGO_ROWS: readonly (readonly [code: number, name: string, ruling: Ruling])[] = [
  [2, 'BadValue', 'integration'],
  [6, 'HostUnreachable', 'transient'],
  [7, 'HostNotFound', 'transient'],
  [9, 'FailedToParse', 'integration'],
  [13, 'Unauthorized', 'integration'],
  [18, 'AuthenticationFailed', 'integration'],
  [24, 'LockTimeout', 'transient'],
  [50, 'MaxTimeMSExpired', 'timeout'],
  [64, 'WriteConcernTimeout', 'timeout'],
  [89, 'NetworkTimeout', 'timeout'],
  [91, 'ShutdownInProgress', 'transient'],
  [112, 'WriteConflict', 'transient'],
  [121, 'DocumentValidationFailure', 'business'],
  [189, 'PrimarySteppedDown', 'transient'],
  [262, 'ExceededTimeLimit', 'timeout'],
  [9001, 'SocketException', 'transient'],
  [10_107, 'NotWritablePrimary', 'transient'],
  [11_000, 'DuplicateKey', 'business'],
  [11_600, 'InterruptedAtShutdown', 'transient'],
  [11_602, 'InterruptedDueToReplStateChange', 'transient'],
  [13_435, 'NotPrimaryNoSecondaryOk', 'transient'],
  [13_436, 'NotPrimaryOrSecondary', 'transient'],
]
export const MONGO_CODES: ReadonlyMap<number, readonly [name: string, ruling: Ruling]> = new Map(
  MONGO_ROWS.map(([code, name, ruling]) => [code, [name, ruling]]),
)

/** Labels with which a MongoDB server or client marks an error that another try may pass. */
export const MONGO_LABELS: readonly string[] = ['TransientTransactionError', 'RetryableWriteError']

/** Reply codes of AMQP 0-9-1: name and meaning. Codes for broken frames are left out: they are bugs. */
export const AMQP_CODES: ReadonlyMap<number, readonly [name: string, ruling: Ruling]> = new Map([
  [311, ['CONTENT_TOO_LARGE', 'integration']],
  // An operator closed the connection, or the server stops.
  [320, ['CONNECTION_FORCED', 'transient']],
  [403, ['ACCESS_REFUSED', 'integration']],
  [404, ['NOT_FOUND', 'integration']],
  // Another connection uses the queue exclusively.
  [405, ['RESOURCE_LOCKED', 'transient']],
  [406, ['PRECONDITION_FAILED', 'integration']],
  [506, ['RESOURCE_ERROR', 'transient']],
  [530, ['NOT_ALLOWED', 'integration']],
  [540, ['NOT_IMPLEMENTED', 'integration']],
  [541, ['INTERNAL_ERROR', 'transient']],
])

/** Types of Kafka's errors that kafkajs does not mark as retriable. The others are not known. */
export const KAFKA_TYPES: Table = table({
  timeout: ['REQUEST_TIMED_OUT'],
  transient: ['BROKER_NOT_AVAILABLE', 'REBALANCE_IN_PROGRESS', 'CONCURRENT_TRANSACTIONS'],
  integration: [
    'CLUSTER_AUTHORIZATION_FAILED',
    'GROUP_AUTHORIZATION_FAILED',
    'INVALID_RECORD',
    'INVALID_REQUIRED_ACKS',
    'INVALID_TOPIC_EXCEPTION',
    'MESSAGE_TOO_LARGE',
    'POLICY_VIOLATION',
    'RECORD_LIST_TOO_LARGE',
    'SASL_AUTHENTICATION_FAILED',
    'TOPIC_AUTHORIZATION_FAILED',
    'TRANSACTIONAL_ID_AUTHORIZATION_FAILED',
    'UNSUPPORTED_SASL_MECHANISM',
    'UNSUPPORTED_VERSION',
  ],
})

/**
 * The first word of an error reply of Redis. `ERR` is left out: it covers wrong commands and full servers.
 * https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors
 */
export const REDIS_WORDS: Table = table({
  transient: [
    'ASK',
    'BUSY',
    'CLUSTERDOWN',
    'LOADING',
    'MASTERDOWN',
    'MISCONF',
    'MOVED',
    'NOREPLICAS',
    'OOM',
    'READONLY',
    'TRYAGAIN',
  ],
  integration: ['CROSSSLOT', 'NOAUTH', 'NOPERM', 'WRONGPASS', 'WRONGTYPE'],
})

/** Names of error replies in ioredis and in node-redis. */
export const REDIS_REPLIES: ReadonlySet<string> = new Set([
  'ReplyError',
  'SimpleError',
  'BlobError',
  'ErrorReply',
])

/**
 * Names of errors that their package gives no code. A name decides only when neither a code nor a cause does: a user's
 * class may have the same name.
 */
export const NAMES: Table = table({
  timeout: [
    // openai and the SDKs that its generator writes
    'APIConnectionTimeoutError',
    // node-redis
    'ConnectionTimeoutError',
    'SocketTimeoutError',
    'SocketTimeoutDuringMaintenanceError',
    'CommandTimeoutDuringMaintenanceError',
    'KafkaJSRequestTimeoutError',
    'KafkaJSTimeout',
    'KafkaJSLockTimeout',
    'MongoNetworkTimeoutError',
    'MongoOperationTimeoutError',
    'SequelizeTimeoutError',
  ],
  transient: [
    // Pools without a free connection
    'KnexTimeoutError',
    'MongoWaitQueueTimeoutError',
    'SequelizeConnectionAcquireTimeoutError',
    // Connections that are closed or cannot be opened
    'APIConnectionError',
    'ClientClosedError',
    'ClientOfflineError',
    'DisconnectsClientError',
    'RootNodesUnavailableError',
    'SocketClosedUnexpectedlyError',
    'ClusterAllFailedError',
    'MaxRetriesPerRequestError',
    'IllegalOperationError',
    'KafkaJSBrokerNotFound',
    'KafkaJSConnectionClosedError',
    'KafkaJSConnectionError',
    'KafkaJSGroupCoordinatorNotFound',
    'KafkaJSMetadataNotLoaded',
    'KafkaJSTopicMetadataNotLoaded',
    'MongoClientClosedError',
    'MongoNetworkError',
    'MongoNotConnectedError',
    'MongoPoolClearedError',
    'MongoPoolClosedError',
    'MongoServerClosedError',
    'MongoServerSelectionError',
    'MongoTopologyClosedError',
    'SequelizeConnectionError',
    'SequelizeConnectionRefusedError',
    'SequelizeConnectionTimedOutError',
    'SequelizeHostNotFoundError',
    'SequelizeHostNotReachableError',
    'StripeConnectionError',
    // Another process changed the row
    'OptimisticLockVersionMismatchError',
    'SequelizeOptimisticLockError',
  ],
  business: ['SequelizeValidationError'],
  integration: ['KafkaJSSASLAuthenticationError', 'SequelizeAccessDeniedError'],
})
