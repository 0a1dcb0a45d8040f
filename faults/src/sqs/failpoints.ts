import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import type { SqsOptions } from '@redrive/sqs'
import type { BrokerProgram } from '../harness/broker-consumer.ts'
import type { CopyKind, Point, SqsConsumerOptions } from './consumer-options.ts'

type Client = NonNullable<SqsOptions['client']>

/**
 * Returns a client that kills its process at one point of a hand-off, or makes SQS deliver messages
 * twice. It is between the transport and the client library, so the transport runs unchanged.
 */
export function watchedClient(
  real: SQSClient,
  { options: { failpoint, twiceEvery }, die }: BrokerProgram<SqsConsumerOptions>,
): Client {
  const { point, copy } = failpoint ?? {}
  // Later requests belong to the selected copy.
  let hasBegun = copy === undefined
  const at = (here: Point) => {
    if (here === point) die(here)
  }
  const twice = twiceEvery === undefined ? undefined : deliverTwice(real, twiceEvery)

  async function send(command: object, options: object): Promise<unknown> {
    const step = stepOf(command)
    if (step === 'send' && kindOf(command as SendMessageBatchCommand) === copy) hasBegun = true
    const isWatched = step !== undefined && (hasBegun || step === 'declare')
    if (isWatched) at(`${step}.before`)
    const response: unknown = await real.send(command as ReceiveMessageCommand, options)
    if (isWatched) at(`${step}.done`)
    if (command instanceof ReceiveMessageCommand)
      await twice?.(command, (response as { readonly Messages?: readonly Message[] }).Messages)
    return response
  }
  return { send: send as Client['send'] }
}

function stepOf(command: object): 'send' | 'delete' | 'declare' | undefined {
  if (command instanceof SendMessageBatchCommand) return 'send'
  if (command instanceof DeleteMessageBatchCommand) return 'delete'
  return command instanceof CreateQueueCommand ? 'declare' : undefined
}

/** Returns what the first copy of a request is for. */
function kindOf({ input: { QueueUrl = '', Entries = [] } }: SendMessageBatchCommand): CopyKind {
  const [first] = Entries
  if (QueueUrl.endsWith('-dlq')) return isQuarantined(first) ? 'quarantine' : 'dead'
  return (first?.DelaySeconds ?? 0) > 0 ? 'retry' : 'return'
}

const isQuarantined = (entry: SendMessageBatchRequestEntry | undefined) =>
  entry?.MessageAttributes?.['redrive']?.StringValue?.includes('"redrive-quarantined"') === true

/** Returns a function that makes every such message available to others while its handler runs. */
function deliverTwice(real: SQSClient, every: number) {
  let count = 0
  return async (
    { input: { QueueUrl } }: ReceiveMessageCommand,
    messages: readonly Message[] = [],
  ): Promise<void> => {
    for (const { ReceiptHandle } of messages) {
      count += 1
      if (count % every !== 0) continue
      const VisibilityTimeout = 0
      await real.send(
        new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout }),
      )
    }
  }
}
