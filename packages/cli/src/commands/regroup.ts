import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { isForPeople, print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { confirmed, mutate } from '../server/mutate.ts'
import { certainIds, resolveUniqueId } from '../server/resolve-id.ts'
import { counted, number } from '../text/format.ts'

export interface RegroupOptions extends CommonOptions {
  readonly reason?: string
}

/** Merges groups into the first one. The server checks that all are groups of one source. */
export async function mergeGroups(
  io: Io,
  [given = '', ...others]: readonly string[],
  options: RegroupOptions,
): Promise<ExitCode> {
  const reason = requireReason(options)
  const client = connect(io, options)
  const [id = '', ...groups] = await certainIds(io, client, 'group', [given, ...others])
  const call = { signal: io.signal }
  const { title } = await client.call('getGroup', { params: { id } }, call)
  await confirmed(io, options, `Merge ${counted(groups.length, 'group')} into "${title}"?`)
  const input = { params: { id }, body: { groups, reason } }
  const done = await mutate(io, client, options, 'mergeGroups', input)
  if (done === undefined) return EXIT.ok
  const { openCount, mergedCount } = done.output
  print(io, options, {
    json: done.output,
    human: (page) => {
      page.line`Group ${id} has ${number(openCount)} open. It contains ${counted(mergedCount, 'merged group')}.`
      for (const one of groups) page.line`To undo it: redrive groups unmerge ${one} --reason "..."`
    },
  })
  return EXIT.ok
}

/** Makes a merged group a separate group again. */
export async function unmergeGroup(
  io: Io,
  given: string,
  options: RegroupOptions,
): Promise<ExitCode> {
  const reason = requireReason(options)
  const client = connect(io, options)
  const id = await resolveUniqueId(io, client, 'group', given)
  const done = await mutate(io, client, options, 'unmergeGroup', {
    params: { id },
    body: { reason },
  })
  if (done === undefined) return EXIT.ok
  print(io, options, {
    json: done.output,
    human: (page) =>
      page.line`Group ${id} is a separate group again, with ${number(done.output.openCount)} open.`,
  })
  return EXIT.ok
}

export interface SplitOptions extends RegroupOptions {
  readonly filter?: string
  readonly name?: string
}

/** Splits matching messages off into a new group, in several requests if there are many. */
export async function splitGroup(io: Io, given: string, options: SplitOptions): Promise<ExitCode> {
  const reason = requireReason(options)
  const { filter, name } = options
  if (filter === undefined || name === undefined) {
    throw new CommandError(EXIT.usage, 'Add --filter and --name: what to split off, and its name.')
  }
  const client = connect(io, options)
  const id = await resolveUniqueId(io, client, 'group', given)
  await confirmed(io, options, `Split ${filter} off into the new group "${name}"?`)
  let [moved, cursor] = [0, undefined as string | undefined]
  for (;;) {
    const body = { filter, name, reason, ...(cursor === undefined ? {} : { cursor }) }
    const done = await mutate(io, client, options, 'splitGroup', { params: { id }, body })
    if (done === undefined) return EXIT.ok
    const { group, nextCursor } = done.output
    moved += done.output.moved
    cursor = nextCursor
    if (cursor === undefined) {
      print(io, options, {
        json: { group, moved },
        human: (page) => {
          page.line`Moved ${counted(moved, 'message')} to group ${group.id}. Later ones follow.`
          page.line`To undo it: redrive groups merge ${id} ${group.id} --reason "..."`
        },
      })
      return EXIT.ok
    }
    if (isForPeople(options)) say(io)`Moved ${number(moved)}; continuing.`
  }
}

function requireReason({ reason }: RegroupOptions): string {
  if (reason !== undefined && reason.trim() !== '') return reason
  throw new CommandError(EXIT.usage, 'Add --reason "..."; the audit log stores it.')
}
