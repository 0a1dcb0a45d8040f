/** The used part of a client of `@redis/client` or `ioredis`. For a cluster, pass one node after the other. */
export interface InformedClient {
  info(section: string): Promise<string>
}

/**
 * Returns the server settings that can lose dead letters, one sentence each with the fix; an empty list
 * when there are none. Call it at start-up and log the result. Rejects when the user may not use INFO.
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

/** Checks the eviction policy, including policies for keys with an expiry, because the keys of the store have one. */
function ofEviction(memory: Info): string[] {
  const policy = memory.get('maxmemory_policy') ?? 'noeviction'
  if (policy === 'noeviction' || memory.get('maxmemory') === '0') return []
  return [
    `maxmemory-policy is "${policy}", so Redis removes dead letters when memory is low. Set it to "noeviction", or use a separate server.`,
  ]
}

function ofPersistence(persistence: Info): string[] {
  if (persistence.get('aof_enabled') !== '0') return []
  return [
    'appendonly is "no", so a crash of Redis loses all dead letters since the last snapshot. Set it to "yes", with appendfsync "everysec" or "always".',
  ]
}
