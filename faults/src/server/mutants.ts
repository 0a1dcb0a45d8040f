import type { Edit, Mutant } from '../hunt.ts'

const ALLOW = 'packages/server/src/access/allow.ts'
const API = 'packages/server/src/http/api.ts'
const APP = 'packages/server/src/http/app.ts'
const COMPILE = 'packages/catalog/src/read/compile.ts'
const GATES = 'packages/catalog/src/replay/gates.ts'
const ORIGINS = 'packages/server/src/start/origins.ts'
const CSRF = 'packages/server/src/http/csrf.ts'
const GROUPS = 'packages/catalog/src/read/groups.ts'
const GUARD = 'packages/server/src/desk/guard.ts'
const HEADERS = 'packages/server/src/http/headers.ts'
const IDEMPOTENCY = 'packages/server/src/http/idempotency.ts'
const IDENTITY_FILE = 'packages/server/src/identity/identity.ts'
const INPUT = 'packages/server/src/http/input.ts'
const JSON_BODY = 'packages/server/src/http/json.ts'
const LIFECYCLE = 'packages/catalog/src/replay/lifecycle.ts'
const LIMITS = 'packages/server/src/http/limits.ts'
const LOGINS = 'packages/server/src/identity/logins.ts'
const PLAN = 'packages/server/src/desk/plan.ts'
const ADDRESSES = 'packages/sinks/src/addresses.ts'
const SINKS_HTTP = 'packages/sinks/src/http.ts'
const RABBITMQ_HEADERS = 'packages/transports/rabbitmq/src/headers.ts'
const REQUESTS = 'packages/api/src/requests.ts'
const LOGIN_ROUTES = 'packages/server/src/identity/routes.ts'
const SESSIONS = 'packages/server/src/identity/sessions.ts'
const TOKENS = 'packages/server/src/identity/tokens.ts'

/** A build without one defence, or without all that stand in the way of one attack: the attack works there. */
const weakened = (scenario: string, name: string, ...edits: readonly Edit[]): Mutant => ({
  ...{ name, edits, scenario: `attack-${scenario}` },
  breaks: 'attack succeeded',
})

const NO_FORGERY: Edit = {
  file: CSRF,
  find: "  if (READING.includes(sent.method) || caller.via === 'token') return\n",
  replace: '  if (sent !== undefined) return\n',
}
const NO_POLICY: Edit = { file: HEADERS, find: 'reply.headers(HEADERS)', replace: 'void HEADERS' }

const FORGERY: readonly Mutant[] = [
  weakened(
    'csrf',
    'another site is not looked for: Origin, Sec-Fetch-Site, type, proof',
    NO_FORGERY,
  ),
  weakened('csrf', 'another site is not looked for, and no Idempotency-Key is needed', NO_FORGERY, {
    file: INPUT,
    find: '  if (key === undefined) {\n',
    replace: "  if (key === undefined) return 'none'\n  if (key === undefined) {\n",
  }),
  weakened('csrf', 'every origin may read, as CORS that is set up carelessly lets it', {
    file: HEADERS,
    find: "app.addHook('onRequest', async (_request, reply) => {\n",
    replace: `app.addHook('onRequest', async (request, reply) => {
    const origin = request.headers.origin
    if (origin !== undefined) reply.header('access-control-allow-origin', origin)
    reply.header('access-control-allow-credentials', 'true')
`,
  }),
  weakened(
    'csrf',
    'pages may be shown in frames of others: neither frame-ancestors nor X-Frame-Options',
    { file: HEADERS, find: `  'frame-ancestors': "'none'",\n`, replace: '' },
    { file: HEADERS, find: "  'x-frame-options': 'DENY',\n", replace: '' },
  ),
  weakened(
    'xss',
    'answers are HTML, without a policy and without nosniff',
    { file: API, find: "'application/json; charset=utf-8'", replace: "'text/html; charset=utf-8'" },
    NO_POLICY,
  ),
  weakened(
    'xss',
    'streams are HTML, without a policy and without nosniff',
    {
      file: API,
      find: 'reply.type(STREAM_TYPES[stream])',
      replace: "reply.type('text/html')",
    },
    NO_POLICY,
  ),
]

const STATEMENTS: readonly Mutant[] = [
  weakened('sql', 'the text of a filter is part of the statement', {
    file: GROUPS,
    find: "const pattern = values.add(containing(text), 'text')",
    replace: "const pattern = `'%${text}%'`",
  }),
  weakened(
    'sql',
    'the order is part of the statement: neither the contract nor the catalog checks it',
    {
      file: REQUESTS,
      find: 'order: z.enum(GROUP_ORDERS).optional()',
      replace: 'order: z.string().optional()',
    },
    { file: GROUPS, find: "  check.oneOf('order', Object.keys(ORDERS))\n", replace: '' },
    {
      file: GROUPS,
      find: "ORDERS[query.order ?? 'last_seen']",
      replace: "(ORDERS[query.order ?? 'last_seen'] ?? query.order)",
    },
  ),
  weakened('sql', 'the pointer into a body is part of the statement', {
    file: COMPILE,
    find: "const path = values.add(pointerSteps(pointer), 'text[]')",
    replace: "const path = `'{${pointer.slice(1)}}'::text[]`",
  }),
]

const REPLAYS: readonly Mutant[] = [
  weakened('crlf', 'headers go back by way of lines of text', {
    file: RABBITMQ_HEADERS,
    find: 'const { CC: _, BCC: __, ...headers } = delivery.headers\n  return {\n    content: Buffer.from(bytes.buffer',
    replace: `const text = Object.entries(delivery.headers).map(([name, value]) => name + ': ' + String(value)).join('\\r\\n')
  const headers = Object.fromEntries(text.split('\\r\\n').map((line) => line.split(': ', 2)))
  return {
    content: Buffer.from(bytes.buffer`,
  }),
  weakened('crlf', 'a plan takes fields that it does not know', {
    file: REQUESTS,
    find: '  z.strictObject({ edit: ',
    replace: '  z.object({ edit: ',
  }),
  weakened('elsewhere', 'a plan takes fields that it does not know', {
    file: REQUESTS,
    find: '  .strictObject({\n    selection: z.union(',
    replace: '  .object({\n    selection: z.union(',
  }),
  weakened('elsewhere', 'who names ids is not asked for the right to replay them', {
    file: PLAN,
    find: "    await guard.check({ ...deed, subject: id }, source, actions, 'deadLetter')\n",
    replace: '    void [guard, deed, actions]\n',
  }),
  weakened('elsewhere', 'the source of a run, group or dead letter is not looked at', {
    file: GUARD,
    find: '    await this.check({ ...deed, source, subject: id }, source, actions, kind)\n',
    replace: '    void actions\n',
  }),
  weakened(
    'elsewhere',
    'a replay goes where the message says: neither the plan nor the publish looks',
    { file: GATES, find: 'origins === undefined || origins.includes(origin)', replace: 'true' },
    {
      file: ORIGINS,
      find: '      if (!allowed.has(origin)) throw notThere(name, origin)\n',
      replace: '      void [allowed, origin]\n',
    },
  ),
  weakened('elsewhere', 'a replay goes to those that the message has in CC', {
    file: RABBITMQ_HEADERS,
    find: 'const { CC: _, BCC: __, ...headers } = delivery.headers',
    replace: 'const { ...headers } = delivery.headers',
  }),
]

const OUTGOING: readonly Mutant[] = [
  weakened('ssrf', 'alerts go to any address', {
    file: ADDRESSES,
    find: '  return world.has(address) && !refusedRanges.has(address)\n',
    replace: '  return world.has(address) || refusedRanges.has(address) || true\n',
  }),
  weakened('ssrf', 'an address that is written as one is not looked at', {
    file: ADDRESSES,
    find: '    return isIP(host) === 0 || this.#allows(host)\n',
    replace: '    return isIP(host) === 0 || host !== ""\n',
  }),
  weakened('ssrf', 'one good address of a name is enough', {
    file: ADDRESSES,
    find: 'const fit = listed(found).filter(({ address }) => isNamed || this.#allows(address))',
    replace: `const all = listed(found)
      const fit = all.some(({ address }) => isNamed || this.#allows(address)) ? all.toReversed() : []`,
  }),
  weakened('ssrf', 'redirects are followed', {
    file: SINKS_HTTP,
    find: '    const answer = await this.ask(request)\n',
    replace: `    const answer = await this.ask(request)
    const { location } = answer.headers
    if (location !== undefined) return this.expectGood({ ...request, url: new URL(location) })
`,
  }),
  weakened('ssrf', 'a name is looked up, found good, and looked up again for the connection', {
    file: ADDRESSES,
    find: '      if (options.all === true) callback(null, fit)\n',
    replace: `      if (fit.length > 0) return this.#resolve(host, options, callback)
      if (options.all === true) callback(null, fit)
`,
  }),
]

const DEVELOPMENT: readonly Mutant[] = [
  weakened('development', 'a server for development answers by any name', {
    file: IDENTITY_FILE,
    find: 'if (name === undefined || !isLoopbackHost(name)) return undefined',
    replace: 'if (name === isLoopbackHost.name) return undefined',
  }),
  weakened('development', 'another site is not looked for', NO_FORGERY),
]

const NO_MEET: Edit = {
  file: TOKENS,
  find: 'grants: meet(grantsNow(owner), row),',
  replace: 'grants: [row],',
}

const IDENTITY: readonly Mutant[] = [
  weakened(
    'fixation',
    'a login goes on with the session that the browser brought',
    {
      file: LOGIN_ROUTES,
      find: 'await oidc.sessions.open(person)',
      replace: 'await oidc.sessions.open(person, request.cookies[publicUrl.cookies.session])',
    },
    {
      file: LOGIN_ROUTES,
      find: '  if (before !== undefined) await oidc.sessions.close(before)\n',
      replace: '  void before\n',
    },
    {
      file: SESSIONS,
      find: '    async open(person) {\n      const secret = newSecret()\n',
      replace:
        '    async open(person, known?: string) {\n      const secret = known ?? newSecret()\n',
    },
  ),
  weakened(
    'fixation',
    'a login may be finished in another browser than it was begun in',
    {
      file: LOGIN_ROUTES,
      find: 'const secret = request.cookies[publicUrl.cookies.login]',
      replace: 'const { state: secret } = request.query as { state?: string }',
    },
    {
      file: LOGINS,
      find: 'where secret_hash = $1\nreturning state, nonce, verifier, return_to as "returnTo", expires_at < now() as "isOver"`,\n        [sha256(secret)],',
      replace:
        'where state = $1\nreturning state, nonce, verifier, return_to as "returnTo", expires_at < now() as "isOver"`,\n        [secret],',
    },
  ),
  weakened('fixation', 'the session before a login stays one', {
    file: LOGIN_ROUTES,
    find: '  if (before !== undefined) await oidc.sessions.close(before)\n',
    replace: '  void before\n',
  }),
  weakened(
    'tokens',
    'a token may more than its maker: neither when it is made nor when it is used is that looked at',
    { file: TOKENS, find: '      mustBeTheirs(caller, request)\n', replace: '' },
    NO_MEET,
  ),
  weakened('tokens', 'a token may what its owner may not any more', NO_MEET),
  weakened('tokens', 'a token is good after its end', {
    file: TOKENS,
    find: ' and expires_at > now()`',
    replace: '`',
  }),
  weakened('tokens', 'the secret of a token is not looked at', {
    file: TOKENS,
    find: 'if (row === undefined || !isRight)',
    replace: 'if (row === undefined || isRight === undefined)',
  }),
  weakened('tokens', 'a token makes tokens', {
    file: TOKENS,
    find: "  if (caller.via === 'token') {\n",
    replace: '  if (caller.via === undefined) {\n',
  }),
  weakened('tokens', 'a token that is wrong is made good by a session', {
    file: IDENTITY_FILE,
    find: 'if (token !== undefined) return callerOfToken(pool, token, grantsNow)\n',
    replace: `if (token !== undefined) {
        const caller = await callerOfToken(pool, token, grantsNow)
        if (caller !== undefined) return caller
      }
`,
  }),
]

const SIZES: readonly Mutant[] = [
  weakened(
    'bombs',
    'bodies may be as large as they like',
    {
      file: LIMITS,
      find: 'export const BODY_BYTES = 1_048_576',
      replace: 'export const BODY_BYTES = 1_073_741_824',
    },
    {
      file: 'packages/server/src/config/schema.ts',
      find: '.default(1_048_576)',
      replace: '.default(1_073_741_824)',
    },
    {
      file: LIMITS,
      find: 'PLAN_BYTES: number = 12 * 1_048_576',
      replace: 'PLAN_BYTES: number = 1_073_741_824',
    },
  ),
  weakened('bombs', 'JSON may be as deep as it likes', {
    file: JSON_BODY,
    find: 'if (isDeeper(body, DEPTH_MAX))',
    replace: 'if (isDeeper(body, Infinity * DEPTH_MAX))',
  }),
  weakened(
    'bombs',
    'an address may be as long as headers are',
    {
      file: LIMITS,
      find: 'export const URL_MAX = 8_192',
      replace: 'export const URL_MAX = 1_000_000',
    },
    {
      file: REQUESTS,
      find: 'const name = z.string().min(1).max(500)',
      replace: 'const name = z.string().min(1)',
    },
    {
      file: 'packages/catalog/src/read/check.ts',
      find: 'const TEXT_MAX = 512',
      replace: 'const TEXT_MAX = 1_000_000',
    },
  ),
  weakened('slow', 'a request may take for ever to arrive', {
    file: APP,
    find: 'requestTimeout: ARRIVAL_MS,',
    replace: 'requestTimeout: 0 * ARRIVAL_MS,',
  }),
]

const FOUR_EYES: readonly Mutant[] = [
  weakened('approval', 'who planned a run approves it', {
    file: LIFECYCLE,
    find: "rule === 'another_person' && who(by) === locked.planned_by",
    replace: 'who(by) === rule',
  }),
  weakened('approval', 'a token is somebody else than its owner', {
    file: TOKENS,
    find: '    person: owner.id,\n    name:',
    replace: '    person: `${owner.id} by ${row.name}`,\n    name:',
  }),
  weakened(
    'approval',
    'a program approves',
    {
      file: ALLOW,
      find: "  if (caller.isAgent && action === 'approve') return false\n",
      replace: '',
    },
    { file: ALLOW, find: " && !(caller.isAgent && action === 'approve')", replace: '' },
  ),
  weakened('approval', 'an approval is for whatever plan there is', {
    file: LIFECYCLE,
    find: 'if (locked.hash !== hash)',
    replace: "if (hash === '')",
  }),
  weakened('approval', 'a plan stays good for ever', {
    file: LIFECYCLE,
    find: 'if (locked.is_stale)',
    replace: "if (hash === '')",
  }),
  weakened('approval', 'what changed since the plan goes out', {
    file: LIFECYCLE,
    find: " and d.status = 'open' and d.version = i.version\n",
    replace: '\n',
  }),
  weakened('approval', 'an Idempotency-Key is the same for everybody', {
    file: IDEMPOTENCY,
    find: 'JSON.stringify([person, credential ?? null])',
    replace: "(person === credential ? person : 'everybody')",
  }),
]

export const MUTANTS: readonly Mutant[] = [
  ...FORGERY,
  ...STATEMENTS,
  ...REPLAYS,
  ...OUTGOING,
  ...DEVELOPMENT,
  ...IDENTITY,
  ...SIZES,
  ...FOUR_EYES,
]
