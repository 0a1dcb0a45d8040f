import type { Topology } from './topology.ts'

const STREAM = 'redrive.stream'
const CONSUMER = 'redrive.consumer'

/** Returns the metadata of the streams of Redrive for a consumer: names alone can belong to two consumers. */
export const ownerOf = ({ stream, consumer }: Topology): Readonly<Record<string, string>> => ({
  [STREAM]: stream,
  [CONSUMER]: consumer,
})

/** Returns the consumer that a stream of Redrive belongs to; undefined: its metadata does not contain it. */
export function readOwner(
  metadata: Readonly<Record<string, string>> = {},
): { readonly stream: string; readonly consumer: string } | undefined {
  const { [STREAM]: stream, [CONSUMER]: consumer } = metadata
  return stream === undefined || consumer === undefined ? undefined : { stream, consumer }
}
