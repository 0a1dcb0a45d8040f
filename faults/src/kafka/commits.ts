import { type Broker, endsOf, type Offsets, readPartition, topicsOf } from './broker.ts'
import { readStored, type StoredCommit } from './wire-format.ts'

/** The internal topic for commits of groups. */
export const COMMITS = '__consumer_offsets'

/** Returns all commits for the topics of a run, in the order in which the cluster stored them. */
export async function storedCommits(
  broker: Broker,
  run: string,
  from: Offsets,
): Promise<readonly StoredCommit[]> {
  const ends = await endsOf(broker, await topicsOf(broker, COMMITS))
  const read = [...ends].map(async ([name, end]) => {
    const partition = Number(name.slice(COMMITS.length + 1))
    const records = await readPartition(broker, COMMITS, partition, [from.get(name) ?? 0, end])
    return records.flatMap(({ key, value }) => readStored(key, value) ?? [])
  })
  const commits = (await Promise.all(read)).flat()
  return commits.filter(({ place }) => place.startsWith(run))
}
