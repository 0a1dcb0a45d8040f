import { RedriveError } from '@redrive/core'
import type { Clock } from '../clock.ts'

export interface SinkCallOptions {
  readonly name: string
  readonly timeoutMs: number
  readonly clock: Clock
}

/** Calls a sink. Rejects on timeout or abort, even when the sink ignores its signal. */
export function callSink(
  { name, timeoutMs, clock }: SinkCallOptions,
  controller: AbortController,
  work: () => Promise<void>,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const cancel = clock.after(timeoutMs, () => controller.abort(timeoutError(name, timeoutMs)))
  controller.signal.addEventListener('abort', () => {
    reject(controller.signal.reason as Error)
  })
  // Asynchronous, so that an exception becomes a rejection.
  const run = async () => work()
  run().then(resolve, reject)
  return promise.finally(cancel)
}

function timeoutError(name: string, timeoutMs: number): RedriveError {
  return new RedriveError(
    'ATTEMPT_TIMEOUT',
    `Sink "${name}" did not respond within ${timeoutMs} ms. Increase "timeout" of its policy if it is always slow.`,
  )
}
