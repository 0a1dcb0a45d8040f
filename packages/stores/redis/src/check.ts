/** What is used of a client of `@redis/client` or `ioredis`. Of a cluster, give one node after the other. */
export interface InformedClient {
  info(section: string): Promise<string>
}

/**
 * What in the settings of a server can lose dead letters, one sentence each with what to do about it; an
 * empty list when nothing can. Ask at start-up and tell somebody. Rejects when the user may not use INFO.
 */
export async function checkRedis(client: InformedClient): Promise<readonly string[]> {
  const memory = read(await client.info('memory'))
  const persistence = read(await client.info('persistence'))
  return [...ofEviction(memory), ...ofPersistence(persistence)]
}

type Info = ReadonlyMap<string, string>

const read = (info: string): Info =>
  new Map(
    info.split('\r\n').map((line) => {
      const [name = '', value = ''] = line.split(':')
      return [name, value]
    }),
  )

/** Also policies for keys that expire only: ours do. */
function ofEviction(memory: Info): string[] {
  const policy = memory.get('maxmemory_policy') ?? 'noeviction'
  if (policy === 'noeviction' || memory.get('maxmemory') === '0') return []
  return [
    `maxmemory-policy is ${policy}: when memory is short Redis removes dead letters. Set it to noeviction, or use a server of its own.`,
  ]
}

function ofPersistence(persistence: Info): string[] {
  if (persistence.get('aof_enabled') !== '0') return []
  return [
    'appendonly is no: a crash of Redis loses all dead letters since the last snapshot. Set it to yes, with appendfsync everysec or always.',
  ]
}
