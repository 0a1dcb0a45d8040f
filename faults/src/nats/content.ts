import type { StoredMsg } from '@nats-io/jetstream'
import type { FoundMessage, Place } from '../evidence/evidence.ts'
import { isAsSent } from '../evidence/message.ts'
import type { BrokerContent, Depths } from '../harness/broker-server.ts'
import { repeated } from '../harness/wait.ts'
import { BACK, type Broker } from './broker.ts'
import type { NatsWorld } from './world.ts'

/** Streams of Redrive have the name of the source at the beginning. */
async function streamsOf({ manager }: Broker, run: string): Promise<readonly string[]> {
  const names: string[] = []
  for await (const name of manager.streams.names()) if (name.startsWith(run)) names.push(name)
  return names
}

/** Returns the place of a message. Undefined: an advisory of the server, which is not a message. */
function placeOf(stream: string, subject: string): Place | undefined {
  if (subject.startsWith('$JS.')) return undefined
  if (stream.endsWith('-dlq')) return subject.endsWith('.quarantine') ? 'quarantine' : 'dlq'
  return /\.delayed\./.test(subject) ? 'delay' : 'source'
}

/** Sources before copies: a message that moves is then counted twice, and never missed. */
const inTurn = (names: readonly string[]) => names.toSorted((a, b) => a.length - b.length)

async function depths({ broker, run }: NatsWorld): Promise<Depths> {
  const found: Record<Place, number> = { source: 0, delay: 0, dlq: 0, quarantine: 0 }
  for (const name of inTurn(await streamsOf(broker, run))) {
    const { state } = await broker.manager.streams.info(name, { subjects_filter: '>' })
    for (const [subject, count] of Object.entries(state.subjects ?? {})) {
      const place = placeOf(name, subject)
      if (place !== undefined) found[place] += count
    }
  }
  return found
}

async function found({ broker, run }: NatsWorld): Promise<readonly FoundMessage[]> {
  const names = inTurn(await repeated(() => streamsOf(broker, run), BACK))
  const all: FoundMessage[] = []
  for (const name of names) all.push(...(await repeated(() => contentOf(broker, name), BACK)))
  return all
}

async function contentOf({ manager }: Broker, stream: string): Promise<readonly FoundMessage[]> {
  const { state } = await manager.streams.info(stream)
  const all: FoundMessage[] = []
  let seq = state.first_seq
  while (seq <= state.last_seq && state.messages > 0) {
    // The types of the client do not contain this request, which skips deleted messages.
    const next = { seq, next_by_subj: '>' } as { seq: number }
    const stored = await manager.streams.getMessage(stream, next)
    if (stored === null) break
    all.push(...foundIn(stream, stored))
    seq = stored.seq + 1
  }
  return all
}

function foundIn(stream: string, { subject, header, data }: StoredMsg): readonly FoundMessage[] {
  const place = placeOf(stream, subject)
  if (place === undefined) return []
  const id = header.get('redrive-id') || header.get('Nats-Msg-Id')
  const reason = header.get('redrive-reason') || undefined
  return [{ id, queue: subject, place, reason, isWhole: isAsSent(id, Buffer.from(data)) }]
}

async function remove({ broker, run }: NatsWorld): Promise<void> {
  for (const name of await streamsOf(broker, run)) await broker.manager.streams.delete(name)
}

export const CONTENT: BrokerContent<NatsWorld> = { depths, found, remove }
