/** 403: the AMQP reply code for a user without the permission. */
export const FORBIDDEN = 403

/** AMQP reply codes of a request that the broker rejects: access refused, not found, locked, precondition failed. */
const CODES: ReadonlySet<unknown> = new Set([FORBIDDEN, 404, 405, 406])

/** Returns whether the broker rejected a request. Every other error is a broken connection. */
export const isRefusal = (error: unknown): boolean => CODES.has(codeOf(error))

export const codeOf = (error: unknown): unknown =>
  (error as { readonly code?: unknown } | undefined)?.code
