import { warningOf } from '../log/text.ts'
import type { CloseOptions } from './options.ts'
import type { Emitter } from './emitter.ts'

export interface FlushOnExitOptions extends CloseOptions {
  /** Signals that end the process. Default `['SIGTERM']`. */
  readonly signals?: readonly NodeJS.Signals[]
}

/**
 * Closes the emitter before the process ends: on SIGTERM, and when the process has no more work. Events in flight are
 * delivered or stored. Without another handler of the signal, the signal then ends the process, as it would without
 * this call. Returns a function that removes the handlers.
 *
 * `process.exit`, an uncaught exception and SIGKILL end the process immediately. Only `durability: 'before_send'`
 * keeps events in flight then.
 *
 * ```ts
 * flushOnExit(events, { drain: '5s' })
 * ```
 */
export function flushOnExit(
  emitter: Pick<Emitter, 'close'>,
  { signals = ['SIGTERM'], ...closing }: FlushOnExitOptions = {},
): () => void {
  const close = () =>
    emitter.close(closing).catch((error: unknown) => {
      process.emitWarning(warningOf(error))
    })
  const onSignal = (signal: NodeJS.Signals) => {
    // Removed first, so that a second signal ends the process immediately.
    remove()
    void close().then(() => {
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
    })
  }
  const onBeforeExit = () => void close()
  const remove = () => {
    for (const signal of signals) process.off(signal, onSignal)
    process.off('beforeExit', onBeforeExit)
  }
  for (const signal of signals) process.on(signal, onSignal)
  process.on('beforeExit', onBeforeExit)
  return remove
}
