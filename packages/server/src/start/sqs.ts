import { SQSClient } from '@aws-sdk/client-sqs'
import type { DeadLetterSource } from '@redrive/runtime'
import { omitUndefined } from '../omit-undefined.ts'

interface SqsAddress {
  readonly region: string | undefined
  readonly endpoint: string | undefined
}

/** Opens a source with a client, which ends with it. The client reads credentials from the environment. */
export function withSqsClient<S extends DeadLetterSource>(
  address: SqsAddress,
  open: (client: SQSClient) => S,
): S {
  const client = new SQSClient(omitUndefined(address))
  const source = open(client)
  const close = source.close.bind(source)
  source.close = async () => {
    await close()
    client.destroy()
  }
  return source
}
