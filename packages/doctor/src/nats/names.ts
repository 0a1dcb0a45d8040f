/** A stream, and its durable consumer. */
export interface NatsSource {
  readonly stream: string
  readonly consumer: string
  /** The text that the names of the streams of Redrive begin with. Default: `<stream>-<consumer>`. */
  readonly prefix?: string
}

const prefixOf = ({ stream, consumer, prefix }: NatsSource): string =>
  prefix ?? `${stream}-${consumer}`
export const retryStream = (source: NatsSource): string => `${prefixOf(source)}-retry`
export const deadLetterStream = (source: NatsSource): string => `${prefixOf(source)}${DEAD_LETTERS}`

const DEAD_LETTERS = '-dlq'

/** The names that `@redrive/nats` writes into the metadata of its streams. */
const STREAM = 'redrive.stream'
const CONSUMER = 'redrive.consumer'

/** Returns the consumer whose dead letters a stream contains; undefined when it is not such a stream of Redrive. */
export function sourceOf(
  name: string,
  { [STREAM]: stream, [CONSUMER]: consumer }: Readonly<Record<string, string>>,
): NatsSource | undefined {
  if (!name.endsWith(DEAD_LETTERS) || stream === undefined || consumer === undefined)
    return undefined
  return { stream, consumer, prefix: name.slice(0, -DEAD_LETTERS.length) }
}
