import type { Client, Run } from '@redrive/api'
import { z } from 'zod'
import { isForAnother } from '../server/mutate.ts'
import { untrusted } from './untrusted.ts'

/** A tool as the protocol shows it, and what it does. */
export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: z.ZodObject
  /** Hints for who decides whether a person is asked first. */
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
  readonly call: (client: Client, args: unknown, signal: AbortSignal) => Promise<string>
}

const id = z.uuid()
/** 50 on a page: what fits into an answer. */
const most = z.int().min(1).max(50).default(20)
const next = z.string().max(500).optional().describe('Of the answer before, to read on')
const source = z.string().min(1).max(500).optional().describe('Name of a source')
const failureClass = z
  .enum(['transient', 'schema', 'business', 'integration', 'unknown'])
  .optional()
const note = z.string().max(2_000).optional().describe('Why, for the people who read it')

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
        throw new Error(`The arguments do not fit.\n${z.prettifyError(read.error)}`)
      return call(client, read.data, signal)
    },
  }
}

const listGroups = tool(
  {
    name: 'list_groups',
    title: 'List failure groups',
    description:
      'Dead letters grouped by what failed: count, class, first and last seen. Start here.',
    input: z.strictObject({
      source,
      class: failureClass,
      hasOpen: z.boolean().default(true),
      most,
      next,
    }),
    annotations: READS,
  },
  async (client, { source: from, ...query }, signal) => {
    const asked = { ...present(query), ...(from === undefined ? {} : { sources: [from] }) }
    return untrusted(await client.call('listGroups', { query: asked }, { signal }))
  },
)

const listEvents = tool(
  {
    name: 'list_dlq_events',
    title: 'List dead letters',
    description: 'Single dead letters, newest failure first, without their bodies.',
    input: z.strictObject({
      source,
      group: id.optional().describe('Id of a failure group'),
      class: failureClass,
      status: z
        .enum(['open', 'replaying', 'unknown', 'resolved', 'discarded', 'expired'])
        .optional(),
      text: z
        .string()
        .min(1)
        .max(500)
        .optional()
        .describe(
          'Part of a failure message. Without group it matches groups by their first message, so the result can contain dead letters without this text',
        ),
      sinceHours: z.int().min(1).max(2_160).default(24).describe('Failed within so many hours'),
      most,
      next,
    }),
    annotations: READS,
  },
  async (client, { source: from, group, status, sinceHours, ...query }, signal) => {
    const asked = {
      ...present(query),
      after: Date.now() - sinceHours * 3_600_000,
      ...(from === undefined ? {} : { sources: [from] }),
      ...(group === undefined ? {} : { groups: [group] }),
      ...(status === undefined ? {} : { statuses: [status] }),
    }
    return untrusted(await client.call('listDeadLetters', { query: asked }, { signal }))
  },
)

const getEvent = tool(
  {
    name: 'get_dlq_event_detail',
    title: 'Show one dead letter',
    description:
      'One dead letter with its attempts, headers and masked body, as far as the token may see them.',
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
      'Freezes a selection and says what would be replayed and what is kept out, and why. Nothing is sent.',
    input: z.strictObject({
      group: id.optional().describe('All open dead letters of this group'),
      ids: z.array(id).min(1).max(1_000).optional().describe('These dead letters'),
      ratePerSecond: z.number().min(0.1).max(10_000).optional(),
      note,
    }),
    annotations: PLANS,
  },
  async (client, { group, ids, ...settings }, signal) => {
    if ((group === undefined) === (ids === undefined))
      throw new Error('Expected either group or ids.')
    const selection = group === undefined ? { ids: ids as string[] } : { group }
    const body = { selection, ...present(settings) }
    return planned(await client.call('planReplay', { body }, { signal }))
  },
)

const replayEvent = tool(
  {
    name: 'replay_dlq_event',
    title: 'Replay one dead letter',
    description:
      'Plans a replay of one dead letter and asks for it to go out. It waits for a person to approve, unless the server lets this token do that.',
    input: z.strictObject({ id: id.describe('Id of the dead letter'), note }),
    annotations: SENDS,
  },
  async (client, { id: one, ...settings }, signal) => {
    const body = { selection: { ids: [one] }, ...present(settings) }
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
      return `The replay is ${started.state}. Run ${run.id}; how far it is: redrive replay show ${run.id}`
    } catch (error) {
      // The rule of the server may want another person, whatever the token may do. Nobody gets by any other refusal.
      if (isForAnother(error)) return planned(run)
      throw error
    }
  },
)

/** What the server says it may do: an approval that is refused for certain is not asked for. */
async function mayApprove(client: Client, name: string, signal: AbortSignal): Promise<boolean> {
  const { sources } = await client.call('listSources', {}, { signal })
  return sources.some((one) => one.source === name && one.may.includes('approve'))
}

/** What a person has to do for it to go out. */
function planned(run: Run): string {
  const { id: runId, hash, source: name, counts, skipped } = run
  if (counts.planned === 0) {
    return `Nothing is replayed: all are kept out. Reasons and counts: ${JSON.stringify(skipped)}. Run ${runId}.`
  }
  return [
    `Planned, not sent: ${counts.planned} to replay, ${counts.skipped} kept out (${JSON.stringify(skipped)}).`,
    `It waits for a person who may approve for the source ${untrustedName(name)}.`,
    `Run: ${runId}`,
    `Hash: ${hash}`,
    `They run: redrive approve ${runId}`,
  ].join('\n')
}

const untrustedName = (name: string): string => JSON.stringify(name.slice(0, 200))

/** Without what was not said. */
function present<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const said = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(said) as { [K in keyof T]: Exclude<T[K], undefined> }
}

export const TOOLS: readonly Tool[] = [listGroups, listEvents, getEvent, planReplay, replayEvent]
