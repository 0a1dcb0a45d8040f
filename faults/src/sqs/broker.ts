import {
  CreateQueueCommand,
  GetQueueUrlCommand,
  SendMessageCommand,
  SQSClient,
  SQSServiceException,
} from '@aws-sdk/client-sqs'
import { bodyOf, type PlannedMessage } from '../evidence/message.ts'
import { type Accepted, produceOnce } from '../harness/produce.ts'
import { type Deadline, repeated } from '../harness/wait.ts'
import type { Sending } from '../harness/world.ts'

/**
 * SQS as an administrator and a producer see it, with the plain client. It uses no code of the
 * transport under test, so a mistake there stays visible.
 */
export interface Broker {
  readonly endpoint: string
  readonly client: SQSClient
}

/** 2 min: a server that was killed is back by then. */
export const BACK: Deadline = { withinMs: 120_000, everyMs: 200 }
const RESPONSE_MS = 5_000
/** More than the producer has unconfirmed. */
const MAX_SOCKETS = 250

/** Returns a client of a server that checks no credentials. */
export const clientAt = (endpoint: string, maxAttempts: number): SQSClient =>
  new SQSClient({
    endpoint,
    maxAttempts,
    requestHandler: { httpAgent: { maxSockets: MAX_SOCKETS } },
    region: 'elasticmq',
    credentials: { accessKeyId: 'faults', secretAccessKey: 'faults' },
  })

/** A producer without retries of the client: each message is sent once. */
export const openBroker = (endpoint: string): Broker => ({
  endpoint,
  client: clientAt(endpoint, 1),
})

/** Sends messages to a queue, which is created when it is missing. */
export async function produce(broker: Broker, sending: Sending): Promise<void> {
  const { queue } = sending
  await createQueue(broker.client, queue)
  const { QueueUrl = '' } = await repeated(
    () => broker.client.send(new GetQueueUrlCommand({ QueueName: queue })),
    BACK,
  )
  await produceOnce(sending, (message) => send(broker, QueueUrl, message))
}

/** Creates a queue, as an application does before its programs start. */
export const createQueue = (client: SQSClient, name: string): Promise<unknown> =>
  repeated(() => client.send(new CreateQueueCommand({ QueueName: name })), BACK)

async function send(
  { client }: Broker,
  QueueUrl: string,
  message: PlannedMessage,
): Promise<Accepted> {
  const text = (StringValue: string) => ({ DataType: 'String', StringValue })
  const command = new SendMessageCommand({
    QueueUrl,
    MessageBody: bodyOf(message).toString(),
    MessageAttributes: {
      'redrive-id': text(message.id),
      'content-type': text('application/json'),
    },
  })
  try {
    await client.send(command, { abortSignal: AbortSignal.timeout(RESPONSE_MS) })
    return 'acknowledged'
  } catch (error) {
    const status = error instanceof SQSServiceException ? error.$metadata.httpStatusCode : undefined
    // Without a response, or after an error of the server, it may have the message.
    return status !== undefined && status < 500 ? 'refused' : 'unknown'
  }
}
