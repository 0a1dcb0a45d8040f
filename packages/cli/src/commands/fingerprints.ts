import type { Client, Output } from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { isForPeople, print, say } from '../print.ts'
import { loaded } from '../server/config.ts'
import { connect } from '../server/connect.ts'
import { confirmed, mutate } from '../server/mutate.ts'
import { bold, dim } from '../text/painted.ts'
import { counted, number } from '../text/format.ts'
import type { Page } from '../text/page.ts'

type Rule = Output<'listFingerprints'>['rules'][number]
type Preview = Output<'previewFingerprints'>

export interface TestOptions extends CommonOptions {
  readonly source?: readonly string[]
  /** A config file whose rules are tried. Default: the rules of the server. */
  readonly config?: string
}

export interface ApplyOptions extends CommonOptions {
  readonly source?: readonly string[]
  readonly reason?: string
}

export async function listFingerprints(io: Io, options: CommonOptions): Promise<ExitCode> {
  const client = connect(io, options)
  const { rules } = await client.call('listFingerprints', {}, { signal: io.signal })
  print(io, options, {
    json: { rules },
    lines: rules,
    human: (page) => {
      if (rules.length === 0) {
        page.line`No fingerprint rules. Add "fingerprints" to the config of the server.`
        return
      }
      page.table<Rule>(
        [
          { title: 'RULE', of: ({ name }) => bold(name), least: 10 },
          { title: 'SOURCE', of: ({ source }) => source ?? 'all', least: 8 },
          { title: 'MATCH', of: conditionsOf, least: 20 },
          { title: 'GROUP', of: ({ group }) => group, least: 10 },
        ],
        rules,
      )
    },
  })
  return EXIT.ok
}

const conditionsOf = ({ match }: Rule) =>
  Object.entries(match)
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ')

/** Shows what the rules would move. Changes nothing. */
export async function testFingerprints(io: Io, options: TestOptions): Promise<ExitCode> {
  const { source, config } = options
  const client = connect(io, options)
  const rules =
    config === undefined ? undefined : (await loaded(io, { config })).config.fingerprints
  const body = {
    ...(rules === undefined ? {} : { rules }),
    ...(source === undefined ? {} : { sources: [...source] }),
  }
  const found = await client.call('previewFingerprints', { body }, { signal: io.signal })
  print(io, options, { json: found, human: (page) => previewOf(page, found) })
  return EXIT.ok
}

function previewOf(page: Page, { rules, examined, isComplete }: Preview): void {
  for (const { rule, group, count, from, examples } of rules) {
    page.line`${bold(rule ?? 'Removed rules')}: ${counted(count, 'open message')} ${
      group === undefined ? 'would return to other groups' : `would move to "${group}"`
    }`
    for (const one of from) page.line`  ${number(one.count)} from ${one.group} ${dim(one.title)}`
    for (const { id, message } of examples) page.line`  such as ${id} ${dim(message)}`
  }
  page.line`Compared ${counted(examined, 'open message')}. Nothing was changed.`
  if (!isComplete)
    page.line`The server stopped before it compared all open messages. Add --source to compare fewer.`
}

/** Moves open messages to the groups of the rules, in several requests. */
export async function applyFingerprints(io: Io, options: ApplyOptions): Promise<ExitCode> {
  const { reason } = options
  if (reason === undefined || reason.trim() === '') {
    throw new CommandError(EXIT.usage, 'Add --reason "..."; the audit log stores it.')
  }
  const client = connect(io, options)
  const sources = await sourcesOf(io, client, options)
  const question = `Move open messages of ${sources.join(', ')} to the groups of the fingerprint rules?`
  await confirmed(io, options, question)
  const total = { moved: 0, examined: 0 }
  let cursor: string | undefined
  do {
    const body = { sources, reason, ...(cursor === undefined ? {} : { cursor }) }
    const done = await mutate(io, client, options, 'applyFingerprints', { body })
    if (done === undefined) return EXIT.ok
    total.moved += done.output.moved
    total.examined += done.output.examined
    cursor = done.output.nextCursor
    if (cursor !== undefined && isForPeople(options))
      say(io)`So far ${counted(total.moved, 'message')} moved, ${number(total.examined)} compared.`
  } while (cursor !== undefined)
  print(io, options, {
    json: total,
    human: (page) =>
      page.line`Moved ${counted(total.moved, 'message')}, compared ${number(total.examined)}.`,
  })
  return EXIT.ok
}

async function sourcesOf(io: Io, client: Client, { source }: ApplyOptions): Promise<string[]> {
  if (source !== undefined) return [...source]
  const { sources } = await client.call('listSources', {}, { signal: io.signal })
  return sources
    .filter(({ permissions }) => permissions.includes('discard'))
    .map((one) => one.source)
}
