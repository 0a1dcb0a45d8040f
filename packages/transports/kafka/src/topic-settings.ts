import type { Admin } from '@platformatic/kafka'
import { isError } from './protocol/client.ts'
import type { TopicSpec } from './topology.ts'

/** `resourceType` of a topic in the protocol. */
const TOPIC = 2 as const
const FOREVER = -1
/** `configOperation` that sets a value. */
const SET = 0 as const

/** A topic to create or to change. */
export interface WantedTopic extends TopicSpec {
  /** Smallest limit of a record. Undefined: as the cluster sets it. */
  readonly maxBytes: number | undefined
}

/** 16 KiB: the header budget, twice. The names of headers and the format of a record need space too. */
const COPY_BYTES = 16_384

/** Returns the limit that the largest copy of a record of the topic needs; undefined without the permission to read it. */
export async function copyLimitOf(admin: Admin, topic: string): Promise<number | undefined> {
  try {
    const configs = await configsOfAll(admin, [topic])
    const limit = Number(configs.get(topic)?.get('max.message.bytes'))
    return limit > 0 ? Math.min(limit + COPY_BYTES, MAX_INT) : undefined
  } catch (error) {
    if (isError(error, ...NOT_PERMITTED)) return undefined
    throw error
  }
}

const MAX_INT = 2 ** 31 - 1
const NOT_PERMITTED = ['TOPIC_AUTHORIZATION_FAILED', 'CLUSTER_AUTHORIZATION_FAILED']
export const SETTING_REJECTED: readonly string[] = ['INVALID_CONFIG', 'POLICY_VIOLATION']

/** Raises settings that are too low. Never lowers them: another consumer may need the current value. */
export async function raiseConfigs(
  admin: Admin,
  spec: WantedTopic,
  config: Config = new Map(),
): Promise<void> {
  const raised = raisedConfigs(spec, config)
  if (raised.length === 0) return
  const configs = raised.map((one) => ({ ...one, configOperation: SET }) as const)
  try {
    await admin.incrementalAlterConfigs({
      resources: [{ resourceType: TOPIC, resourceName: spec.name, configs }],
    })
  } catch (error) {
    // The check that follows reports settings that are required.
    if (isError(error, ...NOT_PERMITTED, ...SETTING_REJECTED)) return
    throw error
  }
  // Only the retention is checked afterwards.
  await waitUntilKnown(`${describeAll(raised)} of ${spec.name}`, async () => {
    const now = (await configsOfAll(admin, [spec.name])).get(spec.name)
    return now !== undefined && !isTooShort(spec, now)
  })
}

function raisedConfigs(spec: WantedTopic, config: Config): readonly TopicConfig[] {
  const isTooSmall = Number(config.get(MAX_BYTES)) < (spec.maxBytes ?? 0)
  return configsOf(spec).filter(
    ({ name }) =>
      (name === RETENTION && isTooShort(spec, config)) || (name === MAX_BYTES && isTooSmall),
  )
}

const RETENTION = 'retention.ms'
const MAX_BYTES = 'max.message.bytes'

export interface TopicConfig {
  readonly name: string
  readonly value: string
}

export const namesOf = (specs: readonly TopicSpec[]): readonly string[] =>
  specs.map(({ name }) => name)

function isTooShort({ retentionMs }: TopicSpec, config: Config): boolean {
  const actual = Number(config.get('retention.ms') ?? FOREVER)
  const wanted = boundedRetention(retentionMs)
  return actual !== FOREVER && (wanted === FOREVER || actual < wanted)
}

/**
 * Returns the configuration of a topic. It is never compacted, so that two failures with one key are both kept.
 * Retry topics use the time of the broker, so that a retry is never early.
 */
export const configsOf = ({
  retentionMs,
  tierMs,
  maxBytes,
}: TopicSpec & Partial<WantedTopic>): readonly TopicConfig[] => [
  { name: 'cleanup.policy', value: 'delete' },
  { name: RETENTION, value: String(boundedRetention(retentionMs)) },
  ...(tierMs === 0 ? [] : [{ name: 'message.timestamp.type', value: 'LogAppendTime' }]),
  ...(maxBytes === undefined ? [] : [{ name: MAX_BYTES, value: String(maxBytes) }]),
]

const boundedRetention = (retentionMs: number) =>
  Number.isSafeInteger(Math.round(retentionMs)) ? Math.round(retentionMs) : FOREVER

export const describeConfigs = (spec: TopicSpec): string => describeAll(configsOf(spec))

const describeAll = (configs: readonly TopicConfig[]) =>
  configs.map(({ name, value }) => `${name}=${value}`).join(', ')

export type Config = ReadonlyMap<string, string>

export async function configsOfAll(
  admin: Admin,
  topics: readonly string[],
): Promise<ReadonlyMap<string, Config>> {
  if (topics.length === 0) return new Map()
  const resources = topics.map((topic) => ({ resourceType: TOPIC, resourceName: topic }))
  const described = await admin.describeConfigs({ resources })
  return new Map(
    described.map(({ resourceName, configs }) => [
      resourceName,
      new Map(configs.map(({ name, value }) => [name, value ?? ''])),
    ]),
  )
}

export function configProblems(spec: TopicSpec, config: Config): readonly string[] {
  const { name, tierMs, retentionMs } = spec
  const problems: string[] = []
  const policy = config.get('cleanup.policy') ?? 'delete'
  if (policy !== 'delete') {
    problems.push(
      `${name} has cleanup.policy=${policy}, which keeps only the last of several failures with one key. Set it to delete.`,
    )
  }
  if (isTooShort(spec, config)) {
    problems.push(
      `${name} has retention.ms=${config.get('retention.ms')}, which is too short. Raise it to ${boundedRetention(retentionMs)}.`,
    )
  }
  if (tierMs > 0 && config.get('message.timestamp.type') !== 'LogAppendTime') {
    problems.push(
      `${name} stores the timestamps of the producer. Set message.timestamp.type=LogAppendTime, because the clock of another machine can make a retry early.`,
    )
  }
  return problems
}

/** 30 s: brokers exchange metadata about a new topic, and a busy one is slow. */
const KNOWN_MS = 30_000
const POLL_MS = 50

/** Waits until the brokers report a change that they accepted. */
export async function waitUntilKnown(what: string, isKnown: () => Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + KNOWN_MS
  while (!(await isKnown())) {
    if (performance.now() > endsAt) {
      throw new Error(
        `Kafka accepted ${what}, but did not apply it within ${KNOWN_MS} ms. Check the brokers, then retry.`,
      )
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}
