import { randomUUID } from 'node:crypto'
import type { Admin } from '@platformatic/kafka'
import { reasonOf } from '../failure.ts'
import type { PeekTarget } from '../peek/read-queue.ts'
import type { Certificates } from '../server/certificates.ts'

export async function openKafka(
  url: URL,
  topic: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  const [kafka, { kafkaSource }] = await Promise.all([
    import('@platformatic/kafka'),
    import('@redrive/kafka'),
  ])
  const { host, username, password, protocol } = url
  const client = {
    ...(protocol === 'kafkas:' ? { tls: { ...tls } } : {}),
    ...(username === ''
      ? {}
      : {
          sasl: {
            mechanism: 'PLAIN' as const,
            username: decodeURIComponent(username),
            password: decodeURIComponent(password),
          },
        }),
  }
  const brokers = [host]
  const withAdmin = async <T>(work: (admin: Admin) => Promise<T>): Promise<T> => {
    const admin = new kafka.Admin({
      clientId: 'redrive-peek',
      bootstrapBrokers: brokers,
      ...client,
    })
    try {
      return await work(admin)
    } finally {
      await admin.close()
    }
  }
  // A separate consumer group: it commits nothing and is deleted afterwards.
  const drainGroup = `redrive-peek-${randomUUID()}`
  const source = kafkaSource({
    brokers,
    topic,
    group: 'peek',
    deadLetterTopics: [topic],
    drainGroup,
    client,
  })
  return {
    source,
    trace: undefined,
    missing: () => withAdmin((admin) => missingTopic(admin, topic)),
    close: async () => {
      await source.close()
      await withAdmin((admin) => deleteGroups(admin, drainGroup))
    },
  }
}

/** Lists all topics. A request for a single topic may create it. */
async function missingTopic(admin: Admin, topic: string): Promise<string | undefined> {
  const topics = await admin.listTopics({ includeInternals: true })
  if (topics.includes(topic)) return undefined
  return `Topic "${topic}" does not exist, or your user has no permission to see it.`
}

async function deleteGroups(admin: Admin, prefix: string): Promise<void> {
  const groups = [...(await admin.listGroups()).keys()].filter((id) => id.startsWith(prefix))
  if (groups.length === 0) return
  try {
    await admin.deleteGroups({ groups })
  } catch (cause) {
    throw new Error(
      `Cannot delete the empty consumer group ${groups.join(', ')}: ${reasonOf(cause)}`,
      { cause },
    )
  }
}
