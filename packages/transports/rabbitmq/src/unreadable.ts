import type { DrainedDeadLetter } from '@redrive/runtime'
import type { ConsumeMessage } from 'amqplib'
import { envelopeOf, type RabbitMqDelivery, toDelivery } from './delivery.ts'
import type { BrokerHeaderTable } from './header-tables.ts'
import type { HeaderTypes } from './message/header-types.ts'
import { NO_HEADERS, propertiesOf } from './message/properties.ts'

/** Headers that change each time the broker delivers the message. */
const DELIVERY_COUNTS: readonly string[] = [
  'x-delivery-count' satisfies keyof BrokerHeaderTable,
  'x-acquired-count',
]

/** Returns the delivery; only a plain one when its headers cannot be read. No message may block the others. */
export function readDelivery(
  source: string,
  raw: ConsumeMessage,
  headerTypes?: HeaderTypes,
): RabbitMqDelivery {
  try {
    return toDelivery(source, raw, headerTypes)
  } catch {
    // The source reads the headers again, and reports the problem with the dead letter.
    return plainDelivery(source, raw, headerTypes)
  }
}

/** Returns the delivery with all its headers, and with nothing that is read from them. */
function plainDelivery(
  source: string,
  raw: ConsumeMessage,
  headerTypes: HeaderTypes | undefined,
): RabbitMqDelivery {
  const { headers = NO_HEADERS } = propertiesOf(raw)
  const kept = Object.entries(headers).filter(([name]) => !DELIVERY_COUNTS.includes(name))
  const withoutHeaders = { ...raw, properties: { ...raw.properties, headers: undefined } }
  return {
    ...toDelivery(source, withoutHeaders),
    raw,
    ...(headerTypes === undefined ? {} : { headerTypes }),
    headers: Object.fromEntries(kept),
  }
}

/** Returns a dead letter whose headers made a reader fail, with all its headers and the problem. */
export function unreadableDeadLetter(
  source: string,
  { raw, headerTypes }: RabbitMqDelivery,
  error: unknown,
): Omit<DrainedDeadLetter, 'quarantined'> {
  const { raw: _, headerTypes: __, ...delivery } = plainDelivery(source, raw, headerTypes)
  const generated = raw.fields.redelivered ? 'generated_redelivered' : 'generated'
  return {
    delivery,
    origin: source,
    envelope: envelopeOf(
      { raw, ...(headerTypes && { headerTypes }) },
      { exchange: '', routingKey: source },
    ),
    class: 'unknown',
    reason: 'unknown',
    identity: propertiesOf(raw).messageId ? 'stable' : generated,
    problem: { code: 'unreadable', message: `The headers cannot be read: ${textOf(error)}.` },
  }
}

export const textOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)
