import { randomUUID } from 'node:crypto'
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  type MessageAttributeValue,
  ReceiveMessageCommand,
  SendMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs'
import { sqsWorld } from './world.ts'

export interface PolicyOptions {
  readonly isFifo?: boolean
  /** Address of a dead-letter queue that another queue uses, too. */
  readonly dlqUrl?: string
}

/** Attributes of each data type. */
const ATTRIBUTES: Record<string, MessageAttributeValue> = {
  count: { DataType: 'Number', StringValue: '7' },
  hash: { DataType: 'Binary', BinaryValue: Uint8Array.from([0, 255]) },
}

/** A queue whose redrive policy moves a message after one delivery, as an application would have created both. */
export async function withRedrivePolicy(client: SQSClient, options: PolicyOptions = {}) {
  const { isFifo = false } = options
  const dlqUrl = options.dlqUrl ?? (await createQueue(client, isFifo))
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: dlqUrl, AttributeNames: ['QueueArn'] }),
  )
  const RedrivePolicy = JSON.stringify({
    deadLetterTargetArn: Attributes?.QueueArn,
    maxReceiveCount: 1,
  })
  const world = await sqsWorld(client, {
    isFifo,
    attributes: { RedrivePolicy, VisibilityTimeout: '0' },
  })
  /** Receives a message and does not delete it, and receives again: SQS moves it. */
  const fail = async () => {
    const receive = new ReceiveMessageCommand({ QueueUrl: world.url, VisibilityTimeout: 0 })
    await client.send(receive)
    await client.send(receive)
  }
  return {
    world,
    queue: world.queue,
    url: world.url,
    dlq: dlqUrl.slice(dlqUrl.lastIndexOf('/') + 1),
    dlqUrl,
    fail,
    /** Sends a message that a plain consumer receives and does not delete. */
    giveUp: async (
      body: string,
      attributes: Record<string, MessageAttributeValue> = ATTRIBUTES,
    ) => {
      await client.send(
        new SendMessageCommand({
          QueueUrl: world.url,
          MessageBody: body,
          MessageAttributes: attributes,
          ...(isFifo ? { MessageGroupId: 'a', MessageDeduplicationId: randomUUID() } : {}),
        }),
      )
      await fail()
    },
    close: async () => {
      await world.close()
      if (options.dlqUrl === undefined)
        await client.send(new DeleteQueueCommand({ QueueUrl: dlqUrl }))
    },
  }
}

async function createQueue(client: SQSClient, isFifo: boolean): Promise<string> {
  const { QueueUrl = '' } = await client.send(
    new CreateQueueCommand({
      QueueName: `failed-${randomUUID()}${isFifo ? '.fifo' : ''}`,
      Attributes: isFifo ? { FifoQueue: 'true' } : {},
    }),
  )
  return QueueUrl
}
