import { type Action, type Answer, ApiError, type Input } from '@redrive/api'
import { CommandError, EXIT, EXIT_OF_PROBLEM, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { type ConfigOptions, loaded, refusedAsUsage } from '../server/config.ts'
import { connect } from '../server/connect.ts'
import { certainId, shortIds } from '../server/ids.ts'
import { confirmed, mutate } from '../server/mutate.ts'
import { bold } from '../text/painted.ts'
import { moment, relative } from '../text/words.ts'

type Token = Answer<'listTokens'>['tokens'][number]
type Grant = Token['grants'][number]

export interface CreateTokenOptions extends CommonOptions, ConfigOptions {
  readonly may: readonly string[]
  readonly source: readonly string[]
  readonly days: number
  readonly agent?: boolean
  /** Subject of a person at the provider: the token is made with the config of the server, not over its API. */
  readonly for?: string
}

/** The secret is data, on stdout, so that it can go to a file. It is shown this once. */
export async function createToken(
  io: Io,
  name: string,
  options: CreateTokenOptions,
): Promise<ExitCode> {
  const { may, source, days, agent } = options
  const body = {
    name,
    actions: may as Action[],
    sources: [...source],
    days,
    ...(agent ? { isAgent: true } : {}),
  }
  const created =
    options.for === undefined
      ? await asked(io, options, body)
      : await issued(io, options, { ...body, subject: options.for })
  if (created === undefined) return EXIT.ok
  const { secret, expiresAt } = created
  print(io, options, { json: created, human: (page) => page.line`${secret}` })
  say(
    io,
  )`Shown once, valid until ${moment(expiresAt)}. Keep it in a file and set REDRIVE_TOKEN_FILE.`
  return EXIT.ok
}

/** Over the API. A server with a provider lets only sessions make tokens, and a command line has none. */
async function asked(
  io: Io,
  options: CreateTokenOptions,
  body: Input<'createToken'>['body'],
): Promise<Answer<'createToken'> | undefined> {
  try {
    return (await mutate(io, connect(io, options), options, 'createToken', { body }))?.answer
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'forbidden')) throw error
    throw new CommandError(
      EXIT_OF_PROBLEM[error.code],
      `${error.message}\nFrom the command line: add --for SUBJECT --config FILE where the config of the server is. SUBJECT is the person at the provider.`,
      { cause: error },
    )
  }
}

/** The first token of all, or that of a machine, which cannot log in. */
async function issued(
  io: Io,
  options: CreateTokenOptions,
  request: Input<'createToken'>['body'] & { readonly subject: string },
): Promise<Answer<'createToken'> | undefined> {
  const { config } = await loaded(io, options)
  if (options.dryRun === true) {
    say(io)`Would make a token for ${request.subject}.`
    return undefined
  }
  const [{ issueTokenFor }, { default: pg }] = await Promise.all([
    import('@redrive/server'),
    import('pg'),
  ])
  const connectionString = config.database.url.reveal()
  const pool = new pg.Pool({ connectionString, max: 2, application_name: 'redrive token' })
  try {
    return await refusedAsUsage(() => issueTokenFor(config, pool, request))
  } finally {
    await pool.end()
  }
}

export async function listTokens(io: Io, options: CommonOptions): Promise<ExitCode> {
  const answer = await connect(io, options).call('listTokens', {}, { signal: io.signal })
  const short = shortIds(answer.tokens.map(({ id }) => id))
  const now = io.now()
  print(io, options, {
    json: answer,
    lines: answer.tokens,
    human: (page) => {
      if (answer.tokens.length === 0) return page.line`You have no token.`
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
          { title: 'MAY', of: ({ grants }) => grants.map(grantText).join('; '), least: 12 },
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
  const id = await certainId(io, client, 'token', given)
  await confirmed(io, options, `Revoke token ${id}?`)
  const revoked = await mutate(io, client, options, 'revokeToken', { params: { id } })
  if (revoked !== undefined)
    print(io, options, {
      json: { revoked: id },
      human: (page) => page.line`Token ${id} is worthless now.`,
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
        ['By', me.via],
      ])
      for (const grant of me.grants) page.line`May ${grantText(grant)}`
      if (me.grants.length === 0) page.line`May do nothing. Ask an administrator for a role.`
    },
  })
  return EXIT.ok
}
