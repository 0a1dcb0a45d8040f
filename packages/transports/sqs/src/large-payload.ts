import { isRecord } from '@redrive/core/internal'

/** The location of a body that is too large for SQS. */
export interface LargePayload {
  readonly bucket: string
  readonly key: string
}

/** Class names that the versions of the Extended Client Library of Amazon write. */
const POINTERS = [
  'software.amazon.payloadoffloading.PayloadS3Pointer',
  'com.amazon.sqs.javamessaging.MessageS3Pointer',
]

/**
 * Returns the location in Amazon S3 of a body that the Extended Client Library has stored there. Undefined: the message
 * has its body. Read the object in the handler: then a failure of S3 is retried like any other.
 */
export function largePayloadOf({
  bytes,
}: {
  readonly bytes: Uint8Array
}): LargePayload | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  if (!POINTERS.some((name) => text.startsWith(`["${name}"`))) return undefined
  const [, pointer] = JSON.parse(text) as readonly unknown[]
  if (!isRecord(pointer)) return undefined
  const { s3BucketName: bucket, s3Key: key } = pointer
  return typeof bucket === 'string' && typeof key === 'string' ? { bucket, key } : undefined
}
