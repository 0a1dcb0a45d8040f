import { FIRST_CYCLE } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { sizeOf, toValue } from '../src/attributes.ts'
import { contentOf, copyOf, toReceived } from '../src/delivery.ts'
import { nativeDeathOf } from '../src/foreign.ts'
import { largePayloadOf } from '../src/index.ts'
import { toBytes, toText } from '../src/text-body.ts'

const received = (names: readonly string[], body = '{}') =>
  toReceived({
    MessageId: 'message-1',
    ReceiptHandle: 'handle-1',
    Body: body,
    Attributes: { ApproximateReceiveCount: '3' },
    MessageAttributes: Object.fromEntries(
      names.map((name) => [name, toValue(name === 'a3' ? 'Number' : 'String', '1')]),
    ),
  })
const OPTIONS = { source: 'orders', isFifo: false }
const names = (count: number) => Array.from({ length: count }, (_, index) => `a${index}`)

describe('a message of SQS', () => {
  it.each([0, 9, 10])('with %i attributes has at most ten in a copy, and loses none', (count) => {
    const delivery = contentOf(received(names(count)), OPTIONS)
    const copy = copyOf(delivery, { cycle: FIRST_CYCLE, deliveries: 2 })
    expect(Object.keys(copy.attributes).length).toBeLessThanOrEqual(10)
    const again = toReceived({ Body: copy.body, MessageAttributes: copy.attributes })
    expect(again.producers).toEqual(delivery.message.producers)
    const read = contentOf(again, OPTIONS)
    expect(read.headers).toEqual(delivery.headers)
    expect(read.id).toBe('message-1')
    expect(read.deliveryCount).toBe(3)
  })

  it.each([
    ['text', Buffer.from('“café”'), undefined],
    ['bytes that are not UTF-8', Buffer.from([0xff, 0xfe]), 'base64'],
    ['a character that SQS rejects', Buffer.from('\u0000'), 'base64'],
    ['no bytes', Buffer.alloc(0), 'base64'],
  ])('keeps %s', (_, bytes, encoding) => {
    const body = toText(bytes)
    expect(body.encoding).toBe(encoding)
    expect(body.text).not.toBe('')
    expect(Buffer.from(toBytes(body.text, body.encoding))).toEqual(bytes)
  })

  it('counts names, types and values of attributes for the limit of the queue', () => {
    const attributes = { ab: toValue('Binary', 'AP8='), c: toValue('String', 'é') }
    expect(sizeOf('body', attributes)).toBe(4 + (2 + 6 + 2) + (1 + 6 + 2))
  })

  it('is unwrapped from the envelope of SNS, and its copy keeps the envelope', () => {
    const envelope = JSON.stringify({
      Type: 'Notification',
      TopicArn: 'arn:aws:sns:eu-west-1:1:orders',
      Message: '{"number":1}',
      MessageAttributes: { tenant: { Type: 'String', Value: 'a' } },
    })
    const delivery = contentOf(received([], envelope), { ...OPTIONS, unwrapSns: true })
    expect(Buffer.from(delivery.bytes).toString()).toBe('{"number":1}')
    expect(delivery.headers).toEqual({ tenant: 'a' })
    expect(copyOf(delivery, { cycle: FIRST_CYCLE }).body).toBe(envelope)
    const whole = contentOf(received([], envelope), OPTIONS)
    expect(Buffer.from(whole.bytes).toString()).toBe(envelope)
  })

  it('with a pointer to a large body names its place in S3', () => {
    const pointer = (name: string) =>
      Buffer.from(JSON.stringify([name, { s3BucketName: 'bodies', s3Key: 'order-1' }]))
    for (const name of [
      'software.amazon.payloadoffloading.PayloadS3Pointer',
      'com.amazon.sqs.javamessaging.MessageS3Pointer',
    ])
      expect(largePayloadOf({ bytes: pointer(name) })).toEqual({ bucket: 'bodies', key: 'order-1' })
    expect(largePayloadOf({ bytes: pointer('another.Class') })).toBeUndefined()
    expect(largePayloadOf({ bytes: Buffer.from('{}') })).toBeUndefined()
  })

  it('that SQS moved has the failure that SQS knows, after its own history', () => {
    const arn = 'arn:aws:sqs:eu-west-1:1:orders'
    const moved = toReceived({ Attributes: { DeadLetterQueueSourceArn: arn, SentTimestamp: '5' } })
    const death = nativeDeathOf(moved, FIRST_CYCLE, 3)
    expect(death).toMatchObject({
      origin: 'orders',
      cycle: { attempts: 3, firstFailedAt: 5, history: [{ code: 'MAX_RECEIVE_COUNT', number: 3 }] },
    })
    expect(nativeDeathOf(toReceived({}), FIRST_CYCLE, 3)).toBeUndefined()
  })
})
