/** The part of a process that is told to end. */
export interface Signalled {
  on(signal: NodeJS.Signals, listener: () => void): unknown
  off(signal: NodeJS.Signals, listener: () => void): unknown
  exit(code: number): void
}

const SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT']

/** 128 and the number of SIGINT, as shells have it: someone did not want to wait. */
const AT_ONCE = 130

/** The first signal asks to end, the second ends at once. `forget` takes it back. */
export function onSignals(target: Signalled): {
  readonly signal: AbortSignal
  readonly forget: () => void
} {
  const asked = new AbortController()
  const listener = () => {
    if (asked.signal.aborted) target.exit(AT_ONCE)
    asked.abort()
  }
  for (const name of SIGNALS) target.on(name, listener)
  return {
    signal: asked.signal,
    forget: () => {
      for (const name of SIGNALS) target.off(name, listener)
    },
  }
}
