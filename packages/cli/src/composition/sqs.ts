import type { SQSClient } from '@aws-sdk/client-sqs'
import { CommandError, EXIT } from '../exit.ts'
import type { PeekTarget } from '../peek/read-queue.ts'
import type { Certificates } from '../server/certificates.ts'

/** Opens a dead-letter queue of Amazon SQS. The client reads credentials from the environment. */
export async function openSqs(
  { hostname, host, port }: URL,
  queue: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  if (tls !== undefined)
    throw new CommandError(EXIT.usage, 'For SQS, set NODE_EXTRA_CA_CERTS instead of --ca.')
  const [{ SQSClient: Client }, { sqsSource }] = await Promise.all([
    import('@aws-sdk/client-sqs'),
    import('@redrive/sqs'),
  ])
  // A host with a port is a server with the API of SQS, which needs any region.
  const client = new Client(
    port === '' ? { region: hostname } : { endpoint: `http://${host}`, region: 'us-east-1' },
  )
  try {
    const place = await deadLettersAt(client, queue)
    const source = sqsSource({ client, ...place, topology: 'verify' })
    return {
      source,
      trace: 'SQS counts this read of a message as a delivery.',
      close: async () => {
        await source.close()
        client.destroy()
      },
    }
  } catch (error) {
    client.destroy()
    throw error
  }
}

/** Returns the address of a dead-letter queue, and a queue whose dead letters it contains. */
async function deadLettersAt(client: SQSClient, name: string) {
  const { GetQueueUrlCommand, ListDeadLetterSourceQueuesCommand, QueueDoesNotExist } = await import(
    '@aws-sdk/client-sqs'
  )
  const { QueueUrl: deadLetters = '' } = await client
    .send(new GetQueueUrlCommand({ QueueName: name }))
    .catch((error: unknown) => {
      throw error instanceof QueueDoesNotExist ? noSqsQueue(name) : error
    })
  const { queueUrls: [queue = OWN_DEAD_LETTERS.exec(name)?.slice(1).join('')] = [] } =
    await client.send(new ListDeadLetterSourceQueuesCommand({ QueueUrl: deadLetters }))
  if (queue === undefined) throw notForDeadLetters(name)
  return { queue, deadLetters }
}

/** A dead-letter queue that Redrive has created: `orders-dlq`, `orders-dlq.fifo`. */
const OWN_DEAD_LETTERS = /^(.+)-dlq(\.fifo)?$/

const noSqsQueue = (name: string) =>
  new CommandError(
    EXIT.notFound,
    `SQS has no queue "${name}". Correct the name, the region or the credentials.`,
  )

const notForDeadLetters = (name: string) =>
  new CommandError(
    EXIT.notFound,
    `The queue "${name}" is not a dead-letter queue: no redrive policy names it. Expected one, or a queue of Redrive such as "orders-dlq".`,
  )
