import type { Client, Input, Run } from '@redrive/api'
import { FILTER_FIELDS } from '@redrive/api/filter'
import { z } from 'zod'
import { isForAnother } from '../server/mutate.ts'
import { untrusted } from './untrusted.ts'

/** A tool: its description in the protocol and its function. */
export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: z.ZodObject
  /** Hints for the client, which decides whether to ask its user first. */
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
  readonly call: (client: Client, args: unknown, signal: AbortSignal) => Promise<string>
}

const id = z.uuid()
/** At most 50 rows, so that a page fits into one result. */
const limit = z.int().min(1).max(50).default(20).describe('Maximum number of rows')
const cursor = z.string().max(500).optional().describe('Cursor of the previous page')
const source = z.string().min(1).max(500).optional().describe('Name of a source')
const failureClass = z
  .enum(['transient', 'schema', 'business', 'integration', 'unknown'])
  .optional()
const filter = z
  .string()
  .min(1)
  .max(4_000)
  .describe(
    `Words such as 'source:orders after:2h "eu bank"'; a dead letter must match all of them. A word without a field is a part of the failure message. Fields: ${FILTER_FIELDS.map(({ example }) => example).join(' ')}`,
  )
const note = z.string().max(2_000).optional().describe('Reason, shown to the approver')

const READS = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}
const PLANS = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
}
const SENDS = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: false,
  openWorldHint: true,
}

function tool<S extends z.ZodObject>(
  about: Omit<Tool, 'call' | 'input'> & { readonly input: S },
  call: (client: Client, args: z.output<S>, signal: AbortSignal) => Promise<string>,
): Tool {
  return {
    ...about,
    call: async (client, args, signal) => {
      const read = about.input.safeParse(args)
      if (!read.success)
        throw new Error(`The arguments are invalid.\n${z.prettifyError(read.error)}`)
      return call(client, read.data, signal)
    },
  }
}

const listGroups = tool(
  {
    name: 'list_groups',
    title: 'List failure groups',
    description:
      'List failure groups (similar failures of one source) with count, class, first and last failure. Start here.',
    input: z.strictObject({
      source,
      class: failureClass,
      hasOpen: z.boolean().default(true).describe('Only groups with open dead letters'),
      limit,
      cursor,
    }),
    annotations: READS,
  },
  async (client, { source: name, ...rest }, signal) => {
    const query = { ...omitUndefined(rest), ...(name === undefined ? {} : { sources: [name] }) }
    return untrusted(await client.call('listGroups', { query }, { signal }))
  },
)

const listEvents = tool(
  {
    name: 'list_dlq_events',
    title: 'List dead letters',
    description: 'List single dead letters, latest failure first, without their bodies.',
    input: z.strictObject({ filter: filter.default('after:24h'), limit, cursor }),
    annotations: READS,
  },
  async (client, query, signal) =>
    untrusted(await client.call('listDeadLetters', { query: omitUndefined(query) }, { signal })),
)

const getEvent = tool(
  {
    name: 'get_dlq_event_detail',
    title: 'Show one dead letter',
    description:
      'Get one dead letter with its attempts, headers and masked body. Fields that the token may not see are hidden.',
    input: z.strictObject({ id: id.describe('Id of the dead letter') }),
    annotations: READS,
  },
  async (client, params, signal) =>
    untrusted(await client.call('getDeadLetter', { params }, { signal })),
)

const planReplay = tool(
  {
    name: 'plan_replay',
    title: 'Plan a replay',
    description:
      'Freeze a selection and preview its replay: how many would be replayed, how many are skipped, and why. Publishes nothing.',
    input: z.strictObject({
      group: id.optional().describe('Id of a failure group: selects its open dead letters'),
      ids: z.array(id).min(1).max(1_000).optional().describe('Ids of dead letters'),
      filter: filter.optional(),
      ratePerSecond: z
        .number()
        .min(0.1)
        .max(10_000)
        .optional()
        .describe('Messages per second (default 50)'),
      note,
    }),
    annotations: PLANS,
  },
  async (client, { group, ids, filter: text, ...settings }, signal) => {
    const given = Object.entries({ group, ids, filter: text }).filter(([, value]) => value)
    if (given.length !== 1) throw new Error('Expected one of "group", "ids" and "filter".')
    const selection = Object.fromEntries(given) as Input<'planReplay'>['body']['selection']
    const body = { selection, ...omitUndefined(settings) }
    return planned(await client.call('planReplay', { body }, { signal }))
  },
)

const replayEvent = tool(
  {
    name: 'replay_dlq_event',
    title: 'Replay one dead letter',
    description:
      'Plan and start the replay of one dead letter. The run waits for the approval of a person, unless the server allows this token to approve.',
    input: z.strictObject({ id: id.describe('Id of the dead letter'), note }),
    annotations: SENDS,
  },
  async (client, { id: one, ...settings }, signal) => {
    const body = { selection: { ids: [one] }, ...omitUndefined(settings) }
    const run = await client.call('planReplay', { body }, { signal })
    if (run.counts.planned === 0 || !(await mayApprove(client, run.source, signal)))
      return planned(run)
    try {
      const params = { id: run.id }
      const started = await client.call(
        'approveReplay',
        { params, body: { hash: run.hash } },
        { signal },
      )
      return `The replay is ${started.state}. Run: ${run.id}. Show its progress: redrive replay show ${run.id}`
    } catch (error) {
      // The approval rule may require another person. Another person cannot solve any other error.
      if (isForAnother(error)) return planned(run)
      throw error
    }
  },
)

/** Returns whether the token has permission to approve. Avoids a request that the server would reject. */
async function mayApprove(client: Client, name: string, signal: AbortSignal): Promise<boolean> {
  const { sources } = await client.call('listSources', {}, { signal })
  return sources.some((one) => one.source === name && one.permissions.includes('approve'))
}

/** Describes a planned run and what the approver must do. */
function planned(run: Run): string {
  const { id: runId, hash, source: name, counts, skipped } = run
  if (counts.planned === 0) {
    return `Nothing to replay: all dead letters are skipped. Reasons and counts: ${JSON.stringify(skipped)}. Run: ${runId}.`
  }
  return [
    `Planned, not published: ${counts.planned} to replay, ${counts.skipped} skipped (${JSON.stringify(skipped)}).`,
    `The run waits for a person with permission "approve" on source ${untrustedName(name)}.`,
    `Run: ${runId}`,
    `Hash: ${hash}`,
    `The approver runs: redrive approve ${runId}`,
  ].join('\n')
}

const untrustedName = (name: string): string => JSON.stringify(name.slice(0, 200))

/** Returns a copy without undefined properties. */
function omitUndefined<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const defined = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(defined) as { [K in keyof T]: Exclude<T[K], undefined> }
}

export const TOOLS: readonly Tool[] = [listGroups, listEvents, getEvent, planReplay, replayEvent]
