/** The part of `process` that receives signals. */
export interface Signalled {
  on(signal: NodeJS.Signals, listener: () => void): unknown
  off(signal: NodeJS.Signals, listener: () => void): unknown
  exit(code: number): void
}

const SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT']

/** 128 plus the number of SIGINT, which is the convention of shells. */
const EXIT_INTERRUPTED = 130

/** Aborts `signal` at the first signal and exits at the second. `forget` removes the listeners. */
export function onSignals(target: Signalled): {
  readonly signal: AbortSignal
  readonly forget: () => void
} {
  const stop = new AbortController()
  const listener = () => {
    if (stop.signal.aborted) target.exit(EXIT_INTERRUPTED)
    stop.abort()
  }
  for (const name of SIGNALS) target.on(name, listener)
  return {
    signal: stop.signal,
    forget: () => {
      for (const name of SIGNALS) target.off(name, listener)
    },
  }
}
