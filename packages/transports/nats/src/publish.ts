import { RedriveError } from '@redrive/core'
import { errors, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node'
import { messageOf } from './connection.ts'

/** A message to store, and its subject. */
export interface Outgoing {
  readonly subject: string
  readonly bytes: Uint8Array
  readonly headers: MsgHdrs
  /** The server stores messages with one id once within its duplicate window. */
  readonly messageId: string
}

/** The response of a stream to a message. */
interface Stored {
  readonly stream?: string
  readonly error?: { readonly err_code?: number; readonly description?: string }
}

/**
 * Publishes a message and waits until a stream has stored it. Rejects with `REFUSED` when the server rejects it, and
 * with `OUTCOME_UNKNOWN` when it does not answer.
 */
export async function store(
  connection: NatsConnection,
  { subject, bytes, headers, messageId }: Outgoing,
  timeoutMs: number,
): Promise<void> {
  headers.set('Nats-Msg-Id', messageId)
  const { error } = await answered(connection, subject, bytes, { headers, timeout: timeoutMs })
  if (error === undefined) return
  const { err_code: code, description = `error ${code}` } = error
  throw code === MESSAGE_TOO_LARGE
    ? tooLarge(subject, `the stream allows (${description}). Raise "max_msg_size" of the stream`)
    : code === HEADERS_TOO_LARGE
      ? tooManyHeaders(subject)
      : refused(subject, description)
}

/** Acknowledges a message and waits until the server has recorded it. */
export async function acknowledge(
  connection: NatsConnection,
  reply: string,
  timeoutMs: number,
): Promise<void> {
  await request(connection, reply, '+ACK', { timeout: timeoutMs })
}

const ENCODER = new TextEncoder()
/** The responses of a consumer: the message is done, or the server may deliver it again immediately. */
type Answer = '+ACK' | '-NAK'
const ANSWERS: Readonly<Record<Answer, Uint8Array>> = {
  '+ACK': ENCODER.encode('+ACK'),
  '-NAK': ENCODER.encode('-NAK'),
}

/** Acknowledges or returns a message without a confirmation. Returns false when the connection is closed. */
export function respond(message: Msg, answer: Answer): boolean {
  try {
    return message.respond(ANSWERS[answer])
  } catch {
    // The connection is closed: the server delivers the message again.
    return false
  }
}

type RequestOptions = Parameters<NatsConnection['request']>[2]

async function answered(
  connection: NatsConnection,
  subject: string,
  bytes: Uint8Array,
  options: RequestOptions,
): Promise<Stored> {
  const response = await request(connection, subject, bytes, options)
  return response.json<Stored>()
}

async function request(
  connection: NatsConnection,
  subject: string,
  payload: Uint8Array | string,
  options: RequestOptions,
) {
  try {
    return await connection.request(subject, payload, options)
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'InvalidArgumentError')
      throw tooLarge(
        subject,
        `the server allows (${cause.message}). Raise "max_payload" of the server`,
        cause,
      )
    if (cause instanceof Error && cause.cause instanceof errors.NoRespondersError)
      throw unroutable(subject, cause)
    throw new RedriveError(
      'OUTCOME_UNKNOWN',
      `NATS did not confirm a message to "${subject}": ${messageOf(cause)}. It may or may not be stored.`,
      { cause },
    )
  }
}

/** The server has answered that no stream has the subject, or that its stream has no leader now. Nothing is stored. */
const unroutable = (subject: string, cause: Error) =>
  new RedriveError(
    'UNROUTABLE',
    `No stream of NATS accepts "${subject}". Check that JetStream runs and that a stream contains the subject.`,
    { cause },
  )

const refused = (subject: string, why: string) =>
  new RedriveError('REFUSED', `NATS rejected a message to "${subject}": ${why}.`)

/** The message exceeds `max_msg_size` of the stream. */
const MESSAGE_TOO_LARGE = 10_054
/** The headers exceed the limit of all streams. */
const HEADERS_TOO_LARGE = 10_097

const TOO_LARGE = Symbol('too large')

const oversized = (message: string, cause?: Error) =>
  Object.assign(new RedriveError('REFUSED', message, { cause }), { [TOO_LARGE]: true })

const tooLarge = (subject: string, limit: string, cause?: Error) =>
  oversized(`A message to "${subject}" is larger than ${limit}.`, cause)

const tooManyHeaders = (subject: string) =>
  oversized(`A message to "${subject}" has more than 64 KB of headers, which no stream stores.`)

/** Returns whether the message exceeded a limit of the server or of the stream. */
export const isTooLarge = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && TOO_LARGE in error
