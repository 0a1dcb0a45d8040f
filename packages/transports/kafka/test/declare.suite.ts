import { isRedriveError, type RedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { deadLetterTopic, replayedTopic, retryTopic, topologyOf } from '../src/index.ts'
import { onRig, Rig } from './rig.ts'

const DAY_MS = 86_400_000

/** Creates all topics with the right settings, except the overrides of the test. */
async function made(
  rig: Rig,
  except: Readonly<Record<string, TopicOverrides>> = {},
): Promise<void> {
  const { retries, deadLetters, replayed } = topologyOf(rig.topic, rig.group, DAY_MS)
  for (const { name, tierMs, retentionMs } of [...retries, deadLetters, replayed]) {
    const { configs = {}, partitions } = except[name] ?? {}
    await rig.makeTopic(
      name,
      {
        'cleanup.policy': 'delete',
        'retention.ms': String(retentionMs),
        ...(tierMs === 0 ? {} : { 'message.timestamp.type': 'LogAppendTime' }),
        ...configs,
      },
      partitions,
    )
  }
}

interface TopicOverrides {
  readonly configs?: Readonly<Record<string, string>>
  readonly partitions?: number
}

export function preparingTopics(brokers: readonly string[]): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(brokers, test, { partitions: 2 })

  /** Returns the error of open. */
  async function refusal(rig: Rig, topology: 'declare' | 'verify'): Promise<RedriveError> {
    const transport = rig.transport({ topology })
    const error = await transport
      .open({ deadLetterRetentionMs: DAY_MS })
      .catch((reason: unknown) => reason)
    if (!isRedriveError(error, 'TOPOLOGY_MISMATCH')) throw new Error(`it said: ${String(error)}`)
    return error
  }

  const configsOf = async (rig: Rig, name: string) => {
    const resources = [{ resourceType: 2 as const, resourceName: name }]
    const [described] = await rig.admin.describeConfigs({ resources })
    return new Map((described?.configs ?? []).map((config) => [config.name, config.value]))
  }

  const partitionsOf = async (rig: Rig, name: string) =>
    (await rig.admin.metadata({ topics: [name], forceUpdate: true })).topics.get(name)
      ?.partitionsCount

  describe.concurrent('preparing topics', () => {
    it('rejects with instructions when the source topic is missing, and does not create it', async () => {
      const rig = await Rig.open(brokers, { isMade: false })
      try {
        for (const topology of ['declare', 'verify'] as const) {
          const { message } = await refusal(rig, topology)
          expect(message).toContain(rig.topic)
          expect(message).toContain('Create it first')
        }
        expect(await rig.admin.listTopics()).not.toContain(rig.topic)
      } finally {
        await rig.clear()
      }
    })

    it(
      'verify lists every missing topic with its settings, and creates none',
      on(async (rig) => {
        const { problems } = (await refusal(rig, 'verify')) as { problems?: readonly string[] }
        const { retries, deadLetters, replayed } = topologyOf(rig.topic, rig.group, DAY_MS)
        expect(problems).toHaveLength(retries.length + 2)
        for (const { name, tierMs } of [...retries, deadLetters, replayed]) {
          const said = problems?.find((problem) => problem.startsWith(`${name} `))
          expect(said).toContain('Create it with 2 partitions')
          expect(said?.includes('LogAppendTime')).toBe(tierMs > 0)
        }
        expect(await rig.admin.listTopics()).not.toContain(deadLetters.name)
      }),
    )

    it(
      'verify accepts topics that were created manually',
      on(async (rig) => {
        await made(rig)
        const transport = rig.transport({ topology: 'verify' })
        await expect(transport.open({ deadLetterRetentionMs: DAY_MS })).resolves.toBeUndefined()
      }),
    )

    it(
      'verify lists all problems together',
      on(async (rig) => {
        const retry = (tierMs: number) => retryTopic(rig.topic, rig.group, tierMs)
        const dead = deadLetterTopic(rig.topic, rig.group)
        await made(rig, {
          [retry(250)]: { configs: { 'cleanup.policy': 'compact' } },
          [retry(1_000)]: { configs: { 'retention.ms': '60000' } },
          [retry(5_000)]: { partitions: 1 },
          [retry(30_000)]: { configs: { 'message.timestamp.type': 'CreateTime' } },
          [dead]: { configs: { 'retention.ms': '1000', 'cleanup.policy': 'compact,delete' } },
        })
        const { problems } = (await refusal(rig, 'verify')) as { problems?: readonly string[] }
        const named = (name: string, ...words: readonly string[]) =>
          problems?.some(
            (one) => one.startsWith(`${name} `) && words.every((word) => one.includes(word)),
          )
        expect(problems).toHaveLength(6)
        expect(named(retry(250), 'cleanup.policy=compact', 'Set it to delete')).toBe(true)
        expect(named(retry(1_000), 'retention.ms=60000', 'Raise it')).toBe(true)
        expect(named(retry(5_000), '1 partitions, but the source has 2')).toBe(true)
        expect(named(retry(30_000), 'message.timestamp.type=LogAppendTime')).toBe(true)
        expect(named(dead, 'cleanup.policy=compact,delete')).toBe(true)
        expect(named(dead, 'retention.ms=1000', `Raise it to ${DAY_MS}`)).toBe(true)
      }),
    )

    it(
      'declare creates missing topics with the right settings, and can be repeated',
      on(async (rig) => {
        const open = () => rig.transport().open({ deadLetterRetentionMs: DAY_MS })
        await Promise.all([open(), open()])
        await rig.transport({ topology: 'verify' }).open({ deadLetterRetentionMs: DAY_MS })
        const { retries, deadLetters, replayed } = topologyOf(rig.topic, rig.group, DAY_MS)
        expect(replayed.retentionMs).toBe(14 * DAY_MS)
        for (const { name, tierMs, retentionMs } of [...retries, deadLetters, replayed]) {
          expect(await partitionsOf(rig, name)).toBe(2)
          const configs = await configsOf(rig, name)
          expect(configs.get('cleanup.policy')).toBe('delete')
          expect(configs.get('retention.ms')).toBe(String(retentionMs))
          const times = tierMs === 0 ? 'CreateTime' : 'LogAppendTime'
          expect(configs.get('message.timestamp.type')).toBe(times)
        }
      }),
    )

    it(
      'declare raises a short retention, keeps a longer one, and adds partitions',
      on(async (rig) => {
        const dead = deadLetterTopic(rig.topic, rig.group)
        const short = retryTopic(rig.topic, rig.group, 250)
        const long = retryTopic(rig.topic, rig.group, 1_000)
        await made(rig, {
          [dead]: { configs: { 'retention.ms': '1000' }, partitions: 1 },
          [short]: { configs: { 'retention.ms': '60000' } },
          [long]: { configs: { 'retention.ms': '-1' } },
        })
        await rig.transport().open({ deadLetterRetentionMs: DAY_MS })
        expect((await configsOf(rig, dead)).get('retention.ms')).toBe(String(DAY_MS))
        expect(Number((await configsOf(rig, short)).get('retention.ms'))).toBeGreaterThan(60_000)
        expect((await configsOf(rig, long)).get('retention.ms')).toBe('-1')
        expect(await partitionsOf(rig, dead)).toBe(2)
      }),
    )

    it(
      'declare reports each topic that the broker does not create, with the words of the broker',
      on(async (rig) => {
        // Kafka refuses names that differ only in dots and underscores.
        const dead = deadLetterTopic(rig.topic, rig.group)
        const replayed = replayedTopic(rig.topic, rig.group)
        for (const name of [dead, replayed]) await rig.makeTopic(name.replaceAll('.', '_'))
        const { message, problems } = await refusal(rig, 'declare')
        const words = (name: string) =>
          expect.stringMatching(`^"${name}": INVALID_TOPIC_EXCEPTION: .*collides`) as string
        expect(problems.toSorted()).toEqual([words(dead), words(replayed)])
        expect(message).toContain(`retry and dead-letter topics of "${rig.topic}"`)
      }),
    )

    it.each(['declare', 'verify'] as const)(
      '%s refuses names that are too long, before it creates a topic',
      (topology) =>
        on(async (rig) => {
          const group = 'g'.repeat(249 - `${rig.topic}..replayed`.length)
          const transport = rig.transport({ group, topology })
          const long = retryTopic(rig.topic, group, 250)
          await expect(transport.open()).rejects.toMatchObject({
            code: 'TOPOLOGY_MISMATCH',
            message: expect.stringContaining(`"${long}" has ${long.length} characters`) as string,
          })
          const all = await rig.admin.listTopics()
          expect(all.filter((name) => name.startsWith(`${rig.topic}.`))).toEqual([])
        })(),
    )

    it(
      'declare keeps dead letters forever without a retention',
      on(async (rig) => {
        await rig.transport().open()
        const configs = await configsOf(rig, deadLetterTopic(rig.topic, rig.group))
        expect(configs.get('retention.ms')).toBe('-1')
      }),
    )

    it(
      'declare does not change an existing cleanup policy, and reports the problem',
      on(async (rig) => {
        const dead = deadLetterTopic(rig.topic, rig.group)
        await made(rig, { [dead]: { configs: { 'cleanup.policy': 'compact' } } })
        expect((await refusal(rig, 'declare')).message).toContain(
          `${dead} has cleanup.policy=compact`,
        )
        expect((await configsOf(rig, dead)).get('cleanup.policy')).toBe('compact')
      }),
    )
  })
}
