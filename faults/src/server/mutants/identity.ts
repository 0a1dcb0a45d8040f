import type { Edit, Mutant } from '../../harness/mutant.ts'
import { weakened } from './weakened.ts'

const API = 'packages/server/src/http/api.ts'
const IDENTITY_FILE = 'packages/server/src/identity/identity.ts'
const IDENTITY_STATEMENTS = 'packages/server/src/identity/statements.ts'
const LOGINS = 'packages/server/src/identity/logins.ts'
const LOGIN_ROUTES = 'packages/server/src/identity/routes.ts'
const SESSIONS = 'packages/server/src/identity/sessions.ts'
const TOKENS = 'packages/server/src/identity/tokens.ts'

const NO_MEET: Edit = [TOKENS, 'grants: meet(grantsNow(owner), row),', 'grants: [row],']

/** Sessions and API tokens. */
export const IDENTITY: readonly Mutant[] = [
  weakened(
    'fixation',
    'a login continues with the session that the browser sent',
    [
      LOGIN_ROUTES,
      'await oidc.sessions.open(person)',
      'await oidc.sessions.open(person, request.cookies[publicUrl.cookies.session])',
    ],
    [
      LOGIN_ROUTES,
      '  if (before !== undefined) await oidc.sessions.close(before)\n',
      '  void before\n',
    ],
    [
      SESSIONS,
      '    async open(person) {\n      const secret = newSecret()\n',
      '    async open(person, known?: string) {\n      const secret = known ?? newSecret()\n',
    ],
  ),
  weakened(
    'fixation',
    'a login can finish in another browser than it started in',
    [
      LOGIN_ROUTES,
      'const secret = request.cookies[publicUrl.cookies.login]',
      'const { state: secret } = request.query as { state?: string }',
    ],
    [
      IDENTITY_STATEMENTS,
      'delete from redrive_server.login where secret_hash = $1\nreturning',
      'delete from redrive_server.login where state = $1\nreturning',
    ],
    [LOGINS, 'const hash = sha256(secret)\n', 'const hash = secret\n'],
  ),
  weakened('fixation', 'the session from before a login stays valid', [
    LOGIN_ROUTES,
    '  if (before !== undefined) await oidc.sessions.close(before)\n',
    '  void before\n',
  ]),
  weakened(
    'tokens',
    'a token has more permissions than its creator: neither its creation nor its use checks this',
    [TOKENS, '      requireOwnPermissions(caller, request)\n', ''],
    NO_MEET,
  ),
  weakened('tokens', 'a token keeps permissions that its owner has lost', NO_MEET),
  weakened('tokens', 'the groups of the last sign-in count forever', [
    IDENTITY_FILE,
    'groupsAgeMs <= auth.oidc.groupsMaxAgeMs',
    'groupsAgeMs <= auth.oidc.groupsMaxAgeMs * 1_000',
  ]),
  weakened('tokens', 'a stream stays open after its credential has ended', [
    API,
    'streams.take(caller, closed.signal, stillAllowed(request, identity))',
    "streams.take(caller, closed.signal, async () => request.id !== '')",
  ]),
  weakened('tokens', 'a token is valid after it expired', [
    IDENTITY_STATEMENTS,
    ' and expires_at > now()`',
    '`',
  ]),
  weakened('tokens', 'the secret of a token is not checked', [
    TOKENS,
    'if (row === undefined || !isRight)',
    'if (row === undefined || isRight === undefined)',
  ]),
  weakened('tokens', 'a token can create tokens', [
    TOKENS,
    "  if (caller.via === 'token') {\n",
    '  if (caller.via === undefined) {\n',
  ]),
  weakened('tokens', 'an invalid token is accepted because of a session', [
    IDENTITY_FILE,
    'if (token !== undefined) return found(await callerOfToken(pool, token, grantsNow, isPassive))\n',
    `if (token !== undefined) {
        const caller = await callerOfToken(pool, token, grantsNow, isPassive)
        if (caller !== undefined) return found(caller)
      }
`,
  ]),
]
