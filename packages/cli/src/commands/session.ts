import type { Output } from '@redrive/api'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { confirmed, mutate } from '../server/mutate.ts'
import { resolveUniqueId, shortIds } from '../server/resolve-id.ts'
import { relative } from '../text/format.ts'
import { bold } from '../text/painted.ts'

type Session = Output<'listSessions'>['sessions'][number]

/** Lists the sessions of all users, for administrators. */
export async function listSessions(io: Io, options: CommonOptions): Promise<ExitCode> {
  const answer = await connect(io, options).call('listSessions', {}, { signal: io.signal })
  const short = shortIds(answer.sessions.map(({ id }) => id))
  const now = io.now()
  print(io, options, {
    json: answer,
    lines: answer.sessions,
    human: (page) => {
      if (answer.sessions.length === 0) return page.line`No user is signed in.`
      page.table<Session>(
        [
          { title: 'SESSION', of: ({ id }) => bold(short(id)) },
          { title: 'NAME', of: ({ name }) => name, least: 8 },
          { title: 'USED', of: ({ lastUsedAt }) => relative(now, lastUsedAt) },
          { title: 'SIGNED IN', of: ({ createdAt }) => relative(now, createdAt) },
          { title: 'USER', of: ({ person }) => person, least: 12 },
        ],
        answer.sessions,
      )
    },
  })
  return EXIT.ok
}

/** Ends a session. The user can sign in again, unless the provider refuses it. */
export async function revokeSession(
  io: Io,
  given: string,
  options: CommonOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const id = await resolveUniqueId(io, client, 'session', given)
  await confirmed(io, options, `End session ${id}?`)
  const revoked = await mutate(io, client, options, 'revokeSession', { params: { id } })
  if (revoked !== undefined)
    print(io, options, {
      json: { revoked: id },
      human: (page) => page.line`Ended session ${id}.`,
    })
  return EXIT.ok
}
