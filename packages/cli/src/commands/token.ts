import { type Output, ApiError, type Input } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import { CommandError, EXIT, EXIT_OF_PROBLEM, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { type ConfigOptions, loaded, refusedAsUsage } from '../server/config.ts'
import { connect } from '../server/connect.ts'
import { resolveUniqueId, shortIds } from '../server/resolve-id.ts'
import { confirmed, mutate } from '../server/mutate.ts'
import { bold } from '../text/painted.ts'
import { isoTime, relative } from '../text/format.ts'

type Token = Output<'listTokens'>['tokens'][number]
type Grant = Token['grants'][number]

export interface CreateTokenOptions extends CommonOptions, ConfigOptions {
  readonly allow: readonly string[]
  readonly source: readonly string[]
  readonly days: number
  readonly agent?: boolean
  /** Subject of a person at the identity provider. The token is created with the server config, not the API. */
  readonly user?: string
}

/** Creates a token and prints its secret once, on stdout, so that it can be redirected to a file. */
export async function createToken(
  io: Io,
  name: string,
  options: CreateTokenOptions,
): Promise<ExitCode> {
  const { allow, source, days, agent } = options
  const body = {
    name,
    actions: allow as Action[],
    sources: [...source],
    days,
    ...(agent ? { isAgent: true } : {}),
  }
  const created =
    options.user === undefined
      ? await createWithApi(io, options, body)
      : await createWithConfig(io, options, { ...body, subject: options.user })
  if (created === undefined) return EXIT.ok
  const { secret, expiresAt } = created
  print(io, options, { json: created, human: (page) => page.line`${secret}` })
  say(
    io,
  )`The secret is shown only once and is valid until ${isoTime(expiresAt)}. Save it in a file and set REDRIVE_TOKEN_FILE.`
  return EXIT.ok
}

/** Creates a token with the API. A server with a provider requires a session for this, and the CLI has none. */
async function createWithApi(
  io: Io,
  options: CreateTokenOptions,
  body: Input<'createToken'>['body'],
): Promise<Output<'createToken'> | undefined> {
  try {
    return (await mutate(io, connect(io, options), options, 'createToken', { body }))?.output
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'forbidden')) throw error
    throw new CommandError(
      EXIT_OF_PROBLEM[error.code],
      `${error.message}\nTo create it here, add --user SUBJECT --config FILE on a machine with the server config. SUBJECT is the id of the person at the identity provider.`,
      { cause: error },
    )
  }
}

/** Creates a token with the server config: the first token, or one for a program that cannot log in. */
async function createWithConfig(
  io: Io,
  options: CreateTokenOptions,
  request: Input<'createToken'>['body'] & { readonly subject: string },
): Promise<Output<'createToken'> | undefined> {
  const { config } = await loaded(io, options)
  if (options.dryRun === true) {
    say(io)`Would create a token for ${request.subject}. Nothing was changed.`
    return undefined
  }
  const [{ connectionOf, issueTokenFor }, { default: pg }] = await Promise.all([
    import('@redrive/server/internal'),
    import('pg'),
  ])
  const connection = connectionOf(config)
  const pool = new pg.Pool({ ...connection, max: 2, application_name: 'redrive token' })
  try {
    return await refusedAsUsage(() => issueTokenFor(config, pool, request))
  } finally {
    await pool.end()
  }
}

export interface ListTokensOptions extends CommonOptions {
  /** Lists the tokens of all users. Requires "configure" on all sources. */
  readonly everyone?: boolean
}

export async function listTokens(io: Io, options: ListTokensOptions): Promise<ExitCode> {
  const { everyone = false } = options
  const query = everyone ? { everyone } : {}
  const answer = await connect(io, options).call('listTokens', { query }, { signal: io.signal })
  const short = shortIds(answer.tokens.map(({ id }) => id))
  const now = io.now()
  print(io, options, {
    json: answer,
    lines: answer.tokens,
    human: (page) => {
      if (answer.tokens.length === 0)
        return page.line`${everyone ? 'There are' : 'You have'} no tokens.`
      page.table<Token>(
        [
          { title: 'TOKEN', of: ({ id }) => bold(short(id)) },
          { title: 'NAME', of: ({ name }) => name, least: 8 },
          { title: 'FOR', of: ({ isAgent }) => (isAgent ? 'agent' : 'person') },
          { title: 'EXPIRES', of: ({ expiresAt }) => relative(now, expiresAt) },
          {
            title: 'USED',
            of: ({ lastUsedAt }) =>
              lastUsedAt === undefined ? 'never' : relative(now, lastUsedAt),
          },
          ...(everyone ? [{ title: 'OWNER', of: ({ person }: Token) => person, least: 8 }] : []),
          { title: 'PERMISSIONS', of: ({ grants }) => grants.map(grantText).join('; '), least: 12 },
        ],
        answer.tokens,
      )
    },
  })
  return EXIT.ok
}

const grantText = ({ actions, sources }: Grant): string =>
  `${actions.join(' ')} on ${sources.join(' ')}`

export async function revokeToken(
  io: Io,
  given: string,
  options: CommonOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const id = await resolveUniqueId(io, client, 'token', given)
  await confirmed(io, options, `Revoke token ${id}?`)
  const revoked = await mutate(io, client, options, 'revokeToken', { params: { id } })
  if (revoked !== undefined)
    print(io, options, {
      json: { revoked: id },
      human: (page) => page.line`Revoked token ${id}.`,
    })
  return EXIT.ok
}

export async function whoami(io: Io, options: CommonOptions): Promise<ExitCode> {
  const { csrf: _, ...me } = await connect(io, options).call('me', {}, { signal: io.signal })
  print(io, options, {
    json: me,
    human: (page) => {
      page.facts([
        ['Person', me.person],
        ['Name', me.name],
        ['Via', me.via],
      ])
      for (const grant of me.grants) page.line`Allowed: ${grantText(grant)}`
      if (me.grants.length === 0) page.line`No permissions. Request a role from an administrator.`
    },
  })
  return EXIT.ok
}
