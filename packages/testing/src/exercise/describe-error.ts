/** 5 causes: enough to reach the driver's error, few enough to read. */
const MAX_CAUSES = 5

/** Returns the code and message of an error and of its causes: `DLQ_FULL: The queue is full <- EPIPE: write EPIPE`. */
export function describeError(error: unknown): string {
  const parts: string[] = []
  let current: unknown = error
  while (current !== undefined && parts.length < MAX_CAUSES) {
    parts.push(describeOne(current))
    current = current instanceof Error ? current.cause : undefined
  }
  return parts.join(' <- ')
}

function describeOne(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code } = error as { readonly code?: unknown }
  // An assertion always has the same code. A failure of the suite must not look like one of the broker.
  const isNamed = typeof code === 'string' && code !== 'ERR_ASSERTION'
  const message = error.message === '' ? error.name : error.message
  return isNamed ? `${code}: ${message}` : message
}
