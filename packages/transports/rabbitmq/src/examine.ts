import { RedriveError } from '@redrive/core'
import { messageOf } from './link.ts'
import {
  deadLetterExchange,
  deadLetterQueue,
  delayQueue,
  replayedQueue,
  STEPS_MS,
} from './topology.ts'

/**
 * What a deployment survives. A: losing a minority of nodes. B: restarts, not the loss of a node.
 * C: it can lose what it has confirmed.
 */
export type DurabilityGrade = 'A' | 'B' | 'C'

export interface Finding {
  /** What it was found on: a queue, an exchange, a node. */
  readonly where: string
  readonly problem: string
  readonly remedy: string
  /** The best grade that is possible with it; undefined when it costs none. */
  readonly grade: DurabilityGrade | undefined
}

export interface Examination {
  readonly version: string
  readonly grade: DurabilityGrade
  /** Worst first. */
  readonly findings: readonly Finding[]
}

export interface ExamineOptions {
  /** The management API, with credentials: `http://user:password@host:15672`. Only read. */
  readonly management: string
  readonly queue: string
  /** Default `'/'`. */
  readonly vhost?: string
}

/** Looks at the broker's real settings for the traps a message can be lost in. Changes nothing. */
export async function examine(options: ExamineOptions): Promise<Examination> {
  const { queue } = options
  const api = new ManagementApi(options)
  const { rabbitmq_version: version } = (await api.get('overview')) as { rabbitmq_version: string }
  const delayQueues = STEPS_MS.map((stepMs) => ({ stepMs, name: delayQueue(queue, stepMs) }))
  const findings = [
    ...ofVersion(version),
    ...ofNodes((await api.get('nodes')) as readonly NodeInfo[]),
    ...ofSource(queue, await api.queue(queue), version),
    ...ofExchange(queue, await api.isBound(deadLetterExchange(queue), deadLetterQueue(queue))),
    ...ofKeeper(deadLetterQueue(queue), await api.queue(deadLetterQueue(queue))),
    ...ofConfirmations(replayedQueue(queue), await api.queue(replayedQueue(queue))),
  ]
  for (const { name, stepMs } of delayQueues) {
    findings.push(...ofDelay(queue, name, stepMs, await api.queue(name)))
  }
  const order = (finding: Finding) => finding.grade ?? ''
  findings.sort((one, other) => order(other).localeCompare(order(one)))
  return { version, grade: findings[0]?.grade ?? 'A', findings }
}

// ---- what is looked for -----------------------------------------------------------------------

interface NodeInfo {
  readonly name: string
  readonly running: boolean
  readonly mem_alarm?: boolean
  readonly disk_free_alarm?: boolean
}

interface QueueInfo {
  readonly type: string
  readonly durable: boolean
  readonly auto_delete: boolean
  readonly exclusive: boolean
  readonly arguments: Readonly<Record<string, unknown>>
  readonly effective_policy_definition?: Readonly<Record<string, unknown>> | null
  readonly members?: readonly string[]
  readonly online?: readonly string[]
}

function ofVersion(version: string): Finding[] {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > 3 || (major === 3 && minor >= 10)) return []
  return [
    {
      where: `RabbitMQ ${version}`,
      problem:
        'it cannot dead-letter at least once: a retry whose time is over may be lost on its way back',
      remedy: 'use RabbitMQ 3.10 or later',
      grade: 'C',
    },
  ]
}

function ofNodes(nodes: readonly NodeInfo[]): Finding[] {
  return nodes.flatMap(({ name, running, mem_alarm, disk_free_alarm }) => {
    const where = `node ${name}`
    const found: Finding[] = []
    if (!running) {
      found.push({ where, problem: 'it does not run', remedy: 'start it', grade: undefined })
    }
    if (mem_alarm === true || disk_free_alarm === true) {
      found.push({
        where,
        problem: `it is short of ${mem_alarm === true ? 'memory' : 'disk'}, so the broker takes no messages: hand-offs wait`,
        remedy: 'drain its queues, or give it more',
        grade: undefined,
      })
    }
    return found
  })
}

function ofSource(name: string, queue: QueueInfo | undefined, version: string): Finding[] {
  if (queue === undefined) return [missing(name, undefined)]
  const where = `queue ${name}`
  const found = ofKeeping(name, queue)
  const set = settings(queue)
  const isLimited = queue.type === 'quorum' && limitOf(set, version) !== undefined
  if (isLimited) {
    found.push({
      where,
      problem: `the broker gives a message up after ${limitOf(set, version)} deliveries, and counts every crash for every message in hand: good messages go with the bad one`,
      remedy: 'set x-delivery-limit far higher; Redrive finds the one that is guilty',
      grade: undefined,
    })
  }
  if (set('dead-letter-exchange') === undefined) {
    found.push({
      where,
      problem: 'it has no dead-letter exchange: what the broker itself gives up is deleted',
      remedy: `set dead-letter-exchange to ${deadLetterExchange(name)}, with dead-letter-routing-key ${name}`,
      grade: isLimited || set('message-ttl') !== undefined ? 'C' : undefined,
    })
  } else if (queue.type === 'quorum') {
    found.push(...ofStrategy(where, set))
  }
  return found
}

/** RabbitMQ has a limit of its own since 4.0. */
function limitOf(set: Setting, version: string): number | undefined {
  const limit = set('delivery-limit') ?? (Number(version.split('.')[0]) >= 4 ? 20 : undefined)
  return typeof limit === 'number' && limit >= 0 && limit < 1_000 ? limit : undefined
}

function ofStrategy(where: string, set: Setting): Finding[] {
  if (set('dead-letter-strategy') !== 'at-least-once') {
    return [
      {
        where,
        problem: 'it dead-letters at most once: a message may be lost on its way',
        remedy: 'set dead-letter-strategy to at-least-once, and overflow to reject-publish',
        grade: 'C',
      },
    ]
  }
  if (set('overflow') === 'reject-publish') return []
  return [
    {
      where,
      problem:
        'at-least-once dead-lettering is set but not in force: it needs overflow reject-publish',
      remedy: 'set overflow to reject-publish',
      grade: 'C',
    },
  ]
}

function ofExchange(queue: string, isBound: boolean): Finding[] {
  if (isBound) return []
  return [
    {
      where: `exchange ${deadLetterExchange(queue)}`,
      problem: `it is missing, or not bound to ${deadLetterQueue(queue)}: what the broker itself gives up goes nowhere`,
      remedy: `declare it as direct and bind ${deadLetterQueue(queue)} to it with the key ${queue}`,
      grade: 'C',
    },
  ]
}

/** The dead-letter queue: it must keep what it gets. */
function ofKeeper(name: string, queue: QueueInfo | undefined): Finding[] {
  return queue === undefined ? [missing(name, 'B')] : ofKeeping(name, queue)
}

/** Made when the first replay is confirmed. */
const ofConfirmations = (name: string, queue: QueueInfo | undefined): Finding[] =>
  queue === undefined ? [] : ofKeeping(name, queue)

function ofDelay(
  source: string,
  name: string,
  stepMs: number,
  queue: QueueInfo | undefined,
): Finding[] {
  // Made when the first retry needs it.
  if (queue === undefined) return []
  const where = `queue ${name}`
  const set = settings(queue)
  const found = [...ofKeeping(name, queue), ...ofStrategy(where, set)]
  if (set('message-ttl') !== stepMs) {
    found.push({
      where,
      problem: `its time to live is ${String(set('message-ttl'))} ms, not ${stepMs} ms: retries come at the wrong time`,
      remedy: 'delete it when it is empty, and let Redrive declare it again',
      grade: undefined,
    })
  }
  if (set('dead-letter-exchange') !== '' || set('dead-letter-routing-key') !== source) {
    found.push({
      where,
      problem: `it does not lead back to ${source}`,
      remedy: `set dead-letter-exchange to '' and dead-letter-routing-key to ${source}`,
      grade: 'C',
    })
  }
  return found
}

/** Whether a queue keeps what it was given, whatever it is for. */
function ofKeeping(name: string, queue: QueueInfo): Finding[] {
  const where = `queue ${name}`
  const set = settings(queue)
  const found: Finding[] = []
  const add = (grade: DurabilityGrade, problem: string, remedy: string) =>
    found.push({ where, problem, remedy, grade })
  if (!queue.durable) add('C', 'it is gone after a restart of the broker', 'declare it as durable')
  if (queue.auto_delete || queue.exclusive) {
    add('C', 'it is deleted with its last consumer', 'declare it without auto-delete and exclusive')
  }
  if (set('expires') !== undefined) {
    add('C', 'it expires when unused, with everything in it', 'remove x-expires')
  }
  const isBounded = set('max-length') !== undefined || set('max-length-bytes') !== undefined
  if (isBounded && (set('overflow') ?? 'drop-head') === 'drop-head') {
    add('C', 'when it is full the oldest messages are dropped', 'set overflow to reject-publish')
  }
  if (queue.type !== 'quorum') {
    add('B', 'it lives on one node', 'use a quorum queue')
    return found
  }
  const { members = [], online = members } = queue
  if (members.length < 3) {
    add(
      'B',
      `it has ${members.length} member${members.length === 1 ? '' : 's'}`,
      'use a cluster of three nodes or more, and grow the queue to them',
    )
  }
  if (online.length < members.length) {
    found.push({
      where,
      problem: `${online.length} of its ${members.length} members are online`,
      remedy: 'bring the others back',
      grade: undefined,
    })
  }
  return found
}

const missing = (name: string, grade: DurabilityGrade | undefined): Finding => ({
  where: `queue ${name}`,
  problem: 'it is missing',
  remedy: "start a consumer with topology: 'declare', or declare what topologyOf lists",
  grade,
})

type Setting = (name: string) => unknown

/** A setting as the broker applies it: the queue's own argument, or else the policy's. */
function settings({ arguments: own, effective_policy_definition: policy }: QueueInfo): Setting {
  return (name) => own[`x-${name}`] ?? policy?.[name]
}

// ---- the management API -----------------------------------------------------------------------

class ManagementApi {
  readonly #base: URL
  readonly #authorization: string
  readonly #vhost: string

  constructor({ management, vhost = '/' }: ExamineOptions) {
    const { username, password, origin, pathname } = new URL(management)
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    this.#base = new URL(`${pathname.replace(/\/$/, '')}/api/`, origin)
    this.#authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
    this.#vhost = encodeURIComponent(vhost)
  }

  async queue(name: string): Promise<QueueInfo | undefined> {
    return (await this.get(`queues/${this.#vhost}/${encodeURIComponent(name)}`)) as
      | QueueInfo
      | undefined
  }

  async isBound(exchange: string, queue: string): Promise<boolean> {
    const [from, to] = [encodeURIComponent(exchange), encodeURIComponent(queue)]
    const bindings = await this.get(`bindings/${this.#vhost}/e/${from}/q/${to}`)
    return Array.isArray(bindings) && bindings.length > 0
  }

  /** Undefined when there is no such thing. */
  async get(path: string): Promise<unknown> {
    const url = new URL(path, this.#base)
    const headers = { authorization: this.#authorization }
    let response: Response
    try {
      response = await fetch(url, { headers, signal: AbortSignal.timeout(ANSWER_MS) })
    } catch (cause) {
      throw unanswered(url, messageOf(cause), cause)
    }
    if (response.status === NOT_FOUND) return undefined
    if (!response.ok) throw unanswered(url, `it answers ${response.status}`)
    return response.json()
  }
}

const NOT_FOUND = 404
/** 10 s: the management API is slow on a loaded broker, and someone is waiting. */
const ANSWER_MS = 10_000

const unanswered = (url: URL, why: string, cause?: unknown) =>
  new RedriveError(
    'UNREACHABLE',
    `The management API at ${url.origin} cannot be read: ${why}. Check the address, that the plugin rabbitmq_management is on, and that the user has the tag "monitoring".`,
    { cause },
  )
