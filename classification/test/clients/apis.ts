/** Clients of HTTP APIs. Their servers send the errors of the real services. */
import { DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb'
import OpenAI from 'openai'
import Stripe from 'stripe'
import {
  MISSING_HOST,
  PATIENCE_MS,
  type Provocations,
  type Provoke,
  type Site,
  WAIT_MS,
} from '../site.ts'

/** Sends one request of the API to a server. */
type Call = (
  host: string,
  port: number,
  options?: { readonly signal?: AbortSignal; readonly waitMs?: number },
) => Promise<unknown>
type Answer = readonly [status: number, body?: unknown, headers?: Readonly<Record<string, string>>]

const local = (call: Call, port: (site: Site) => Promise<number>) => async (site: Site) =>
  call('127.0.0.1', await port(site))

const answered =
  (call: Call) =>
  (...[status, body, headers]: Answer): Provoke =>
    local(call, (site) =>
      site.respond({ status, ...(body !== undefined && { body }), ...(headers && { headers }) }),
    )

/** The situations of every API in which the server does not respond. */
const unanswered = (call: Call) => ({
  'closed port': local(call, (site) => site.closedPort()),
  'host does not exist': () => call(MISSING_HOST, 80),
  'no response': async (site: Site) =>
    call('127.0.0.1', await site.silentPort(), { waitMs: WAIT_MS }),
  'connection reset': local(call, (site) => site.resetPort()),
})

const RETRY_AFTER = { 'retry-after': '7' }

const callOpenAi: Call = (host, port, { signal, waitMs = PATIENCE_MS } = {}) =>
  new OpenAI({
    apiKey: 'test',
    baseURL: `http://${host}:${port}/v1`,
    maxRetries: 0,
    timeout: waitMs,
  }).chat.completions.create({ model: 'any', messages: [] }, { ...(signal && { signal }) })

const openAiError = (type: string, code: string | null) => ({
  error: { message: 'it failed', type, param: null, code },
})

const openAi = answered(callOpenAi)
const OPENAI = {
  ...unanswered(callOpenAi),
  'cancelled by the caller': async (site: Site) => {
    const cancel = new AbortController()
    const sent = callOpenAi('127.0.0.1', await site.silentPort(), {
      signal: cancel.signal,
    })
    cancel.abort()
    return sent
  },
  'bad request': openAi(400, openAiError('invalid_request_error', null)),
  'key rejected': openAi(401, openAiError('invalid_request_error', 'invalid_api_key')),
  'too many requests': openAi(429, openAiError('requests', 'rate_limit_exceeded'), RETRY_AFTER),
  'too many requests, retry-after-ms': openAi(429, openAiError('requests', null), {
    'retry-after-ms': '1500',
  }),
  'status 500': openAi(500, openAiError('server_error', null)),
  'status 503 with Retry-After': openAi(503, openAiError('server_error', null), RETRY_AFTER),
}

const callStripe: Call = (host, port, { waitMs = PATIENCE_MS } = {}) =>
  new Stripe('sk_test', {
    host,
    port,
    protocol: 'http',
    maxNetworkRetries: 0,
    timeout: waitMs,
    telemetry: false,
  }).customers.retrieve('cus_1')

const stripeError = (type: string, code?: string) => ({ error: { message: 'no', type, code } })

const stripe = answered(callStripe)
const STRIPE = {
  ...unanswered(callStripe),
  'bad request': stripe(400, stripeError('invalid_request_error', 'parameter_missing')),
  'key rejected': stripe(401, stripeError('invalid_request_error')),
  'card declined': stripe(402, stripeError('card_error', 'card_declined')),
  'same idempotency key in use': stripe(409, stripeError('idempotency_error')),
  'too many requests': stripe(429, stripeError('rate_limit_error', 'rate_limit'), RETRY_AFTER),
  'status 500': stripe(500, stripeError('api_error')),
  'status 503 with Retry-After': stripe(503, stripeError('api_error'), RETRY_AFTER),
}

const dynamo = (host: string, port: number, waitMs: number) =>
  new DynamoDBClient({
    region: 'eu-west-1',
    endpoint: `http://${host}:${port}`,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxAttempts: 1,
    requestHandler: { requestTimeout: waitMs, throwOnRequestTimeout: true },
  })

const callAws: Call = (host, port, { signal, waitMs = PATIENCE_MS } = {}) =>
  dynamo(host, port, waitMs).send(new GetItemCommand({ TableName: 't', Key: { id: { S: '1' } } }), {
    ...(signal && { abortSignal: signal }),
  })

const awsError = (type: string) => ({
  __type: `com.amazonaws.dynamodb.v20120810#${type}`,
  message: 'it failed',
})
const aws = (status: number, type: string) => answered(callAws)(status, awsError(type))

const AWS = {
  ...unanswered(callAws),
  'cancelled by the caller': async (site: Site) => {
    const cancel = new AbortController()
    const sent = callAws('127.0.0.1', await site.silentPort(), {
      signal: cancel.signal,
    })
    cancel.abort()
    return sent
  },
  'key rejected': aws(400, 'UnrecognizedClientException'),
  'table does not exist': aws(400, 'ResourceNotFoundException'),
  'condition not met': aws(400, 'ConditionalCheckFailedException'),
  'transaction conflict': aws(400, 'TransactionConflictException'),
  'transaction cancelled by a conflict': answered(callAws)(400, {
    ...awsError('TransactionCanceledException'),
    CancellationReasons: [{ Code: 'None' }, { Code: 'TransactionConflict' }],
  }),
  'transaction cancelled by a condition': answered(callAws)(400, {
    ...awsError('TransactionCanceledException'),
    CancellationReasons: [{ Code: 'None' }, { Code: 'ConditionalCheckFailed' }],
  }),
  throttled: aws(400, 'ThrottlingException'),
  'capacity exceeded': aws(400, 'ProvisionedThroughputExceededException'),
  'too many requests': aws(429, 'TooManyRequestsException'),
  'status 500': aws(500, 'InternalServerError'),
  'status 503': answered(callAws)(503),
}

export const API_CLIENTS: Provocations = {
  openai: OPENAI,
  stripe: STRIPE,
  '@aws-sdk/client-dynamodb': AWS,
}
