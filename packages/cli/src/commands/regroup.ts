import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
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

function requireReason({ reason }: RegroupOptions): string {
  if (reason !== undefined && reason.trim() !== '') return reason
  throw new CommandError(EXIT.usage, 'Add --reason "..."; the audit log stores it.')
}
