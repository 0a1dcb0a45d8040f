import type { AlertChannel } from './channel.ts'

/** The result of a delivery that failed, for its alerts. */
export type DeliveryFailure =
  /** The channel rejects the content, so it would also reject it later. */
  | 'rejected'
  /** The channel did not accept the message. It may accept it later. */
  | 'notAccepted'
  /** The channel may have accepted the message. */
  | 'unknown'

/** The statuses of HTTP for a body that is not valid or too large. Others of 4xx concern the whole channel. */
const CONTENT_STATUSES: ReadonlySet<number> = new Set([400, 413, 422])
/** A gateway responds with them, also after the service behind it accepted the message. */
const GATEWAY_STATUSES: ReadonlySet<number> = new Set([502, 504])
/** Errors before the message is sent: of connections, of `@redrive/sinks`, and of the library for e-mail. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  ...['EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND'],
  ...['REFUSED', 'UNREACHABLE'],
  ...['EAUTH', 'EDNS', 'EENVELOPE', 'ENOAUTH', 'ETLS'],
])

/** Returns what the error of `AlertChannel.send` means. An error without a known code has an unknown outcome. */
export function deliveryFailureOf(error: unknown): DeliveryFailure {
  if (typeof error !== 'object' || error === null) return 'unknown'
  const { status, code, responseCode, command } = error as Readonly<Record<string, unknown>>
  if (typeof status === 'number') {
    if (CONTENT_STATUSES.has(status)) return 'rejected'
    return GATEWAY_STATUSES.has(status) ? 'unknown' : 'notAccepted'
  }
  // A mail server reads the content in the step DATA. Codes from 500 are permanent.
  if (typeof responseCode === 'number') {
    return command === 'DATA' && responseCode >= 500 ? 'rejected' : 'notAccepted'
  }
  return NOT_SENT.has(code) ? 'notAccepted' : 'unknown'
}

/** 3 times: a service may reject a valid message once by mistake. */
export const REJECTIONS_MAX = 3
/** 10 s for a delivery, including the DNS lookup. */
const TIMEOUT_MS = 10_000

/** Returns the signal that ends a delivery to this channel. */
export const deliverySignal = ({
  timeoutMs = TIMEOUT_MS,
}: Pick<AlertChannel, 'timeoutMs'>): AbortSignal => AbortSignal.timeout(timeoutMs)
