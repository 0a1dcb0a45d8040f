import type { Options } from 'amqplib'

/** 1 MiB: the limit of the ingest in this scenario. */
export const MAX_PAYLOAD_BYTES = 1_048_576
/** The content type that the database of this scenario rejects. */
export const REJECTED_TYPE = 'application/x-rejected'

/** The header that is too large to publish again. */
export const LARGE_HEADER = 'stack'

/** A message in the dead-letter queue. Its correlation id is its number. */
export interface Sample {
  readonly index: number
  readonly kind: string
  readonly isSetAside: boolean
  readonly body: Buffer
  readonly properties: Options.Publish
  /** Whether the client library cannot encode it. */
  readonly isByHttp: boolean
}

interface SampleKind {
  readonly name: string
  readonly isSetAside?: boolean
  readonly hasId?: boolean
  readonly isByHttp?: boolean
  readonly body?: (index: number) => Buffer
  readonly headers?: (index: number) => Readonly<Record<string, unknown>>
  readonly contentType?: string
}

const plainBody = (index: number) => Buffer.from(JSON.stringify({ order: index }))
const plainHeaders = (index: number) => ({ tenant: 'Zoë', number: index, list: [1, 'two'] })

const largeBody = (index: number) =>
  Buffer.concat([plainBody(index), Buffer.alloc(1_600_000, index % 251)])

function deep(levels: number, wrap: (value: unknown) => unknown): unknown {
  let value: unknown = 'end'
  for (let level = 0; level < levels; level++) value = wrap(value)
  return value
}

const largeHeaders = (index: number) => ({
  number: index,
  [LARGE_HEADER]: 'at Shop.charge()\n'.repeat(5_000),
})

/** The first kinds have no id, so that some of them are committed and not released when the ingest dies. */
const BAD: readonly SampleKind[] = [
  { name: 'large body without an id', isSetAside: true, hasId: false, body: largeBody },
  {
    name: 'lists 200 levels deep, without an id',
    isSetAside: true,
    hasId: false,
    headers: (index) => ({ index, deep: deep(200, (one) => [one]) }),
  },
  {
    name: 'headers above 64 KiB without an id',
    isSetAside: true,
    hasId: false,
    isByHttp: true,
    headers: largeHeaders,
  },
  { name: 'large body', isSetAside: true, body: largeBody },
  { name: 'headers above 64 KiB', isSetAside: true, isByHttp: true, headers: largeHeaders },
  {
    name: 'tables 70 levels deep',
    isSetAside: true,
    headers: () => ({ deep: deep(70, (one) => ({ one })) }),
  },
  { name: 'value that the database rejects', isSetAside: true, contentType: REJECTED_TYPE },
  { name: 'x-death that is no list of deaths', headers: () => ({ 'x-death': [null, 7, ['a']] }) },
  {
    name: 'address that is no address',
    headers: () => ({ 'MT-Reason': 'fault', 'MT-Fault-InputAddress': 'rabbitmq://h/v/queue%zz' }),
  },
  {
    name: 'headers of Redrive that Redrive never wrote',
    headers: () => ({
      'redrive-history': '{bad',
      'redrive-cycle': '-5',
      'redrive-version': 'x',
      'redrive-aside': 'null',
      'redrive-reason': 'made up',
    }),
  },
  {
    name: 'text with NUL and a name of the prototype',
    headers: () => ({ 'a\0b': 'c\0d', constructor: 'x', bytes: Buffer.from([0, 255]) }),
  },
  { name: 'JSON 30,000 levels deep', body: () => Buffer.from('['.repeat(30_000)) },
]

const GOOD: SampleKind = { name: 'good' }

/** Returns `good` messages with `each` messages of every bad kind, evenly distributed among them. */
export function samplesOf(good: number, each: number): readonly Sample[] {
  const bad = each * BAD.length
  const step = Math.floor((good + bad) / bad)
  return Array.from({ length: good + bad }, (_, index) => {
    const isBad = index % step === 0 && index / step < bad
    return sampleOf(index, isBad ? (BAD[(index / step) % BAD.length] ?? GOOD) : GOOD)
  })
}

function sampleOf(index: number, kind: SampleKind): Sample {
  const { body = plainBody, headers = plainHeaders, hasId = true, contentType } = kind
  return {
    index,
    kind: kind.name,
    isSetAside: kind.isSetAside ?? false,
    isByHttp: kind.isByHttp ?? false,
    body: body(index),
    properties: {
      persistent: true,
      correlationId: String(index),
      contentType: contentType ?? 'application/json',
      ...(hasId ? { messageId: `message-${index}` } : {}),
      headers: headers(index),
    },
  }
}

/** Headers that the broker and Redrive write. They are not the producer's. */
const OTHERS = /^(?:x-death|redrive-)/

/** Returns the headers that a stored message must have. */
export const producerHeaders = ({ properties }: Sample): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(properties.headers as object).filter(([name]) => !OTHERS.test(name)),
  )
