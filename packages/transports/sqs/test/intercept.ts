import type { SQSClient } from '@aws-sdk/client-sqs'
import type { SqsClient } from '../src/index.ts'

/** Sends the command to the server. */
type Send = () => Promise<unknown>

/** Returns a client that passes each command to a function, which decides whether the server gets it. */
export function intercept(
  real: SQSClient,
  change: (command: object, send: Send) => Promise<unknown>,
): SqsClient {
  const send = (command: Parameters<SQSClient['send']>[0], options: object) =>
    change(command, () => real.send(command, options))
  return { send: send as SqsClient['send'] }
}

/** A server that does not respond: the caller waits until its timeout. */
export const hang = (): Promise<never> => new Promise(() => undefined)
