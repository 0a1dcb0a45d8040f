import type { Edit, Mutant } from '../../harness/mutant.ts'
import { weakened } from './weakened.ts'

const API = 'packages/server/src/http/api.ts'
const CSRF = 'packages/server/src/http/csrf.ts'
const HEADERS = 'packages/server/src/http/headers.ts'
const IDENTITY_FILE = 'packages/server/src/identity/identity.ts'
const INPUT = 'packages/server/src/http/input.ts'

const NO_FORGERY: Edit = [
  CSRF,
  "  if (READING.includes(sent.method) || caller.via === 'token') return\n",
  '  if (sent !== undefined) return\n',
]
const NO_POLICY: Edit = [HEADERS, 'reply.headers(HEADERS)', 'void HEADERS']

/** Requests of other sites, and pages that run scripts. */
export const OTHER_SITES: readonly Mutant[] = [
  weakened(
    'csrf',
    'no check for another site: Origin, Sec-Fetch-Site, content type, CSRF token',
    NO_FORGERY,
  ),
  weakened('csrf', 'no check for another site, and no Idempotency-Key is needed', NO_FORGERY, [
    INPUT,
    '  if (key === undefined) {\n',
    "  if (key === undefined) return 'none'\n  if (key === undefined) {\n",
  ]),
  weakened('csrf', 'every origin may read, as with a careless CORS setup', [
    HEADERS,
    "app.addHook('onRequest', async (_request, reply) => {\n",
    `app.addHook('onRequest', async (request, reply) => {
    const origin = request.headers.origin
    if (origin !== undefined) reply.header('access-control-allow-origin', origin)
    reply.header('access-control-allow-credentials', 'true')
`,
  ]),
  weakened(
    'csrf',
    'other sites may show pages in frames: neither frame-ancestors nor X-Frame-Options',
    [HEADERS, `  'frame-ancestors': "'none'",\n`, ''],
    [HEADERS, "  'x-frame-options': 'DENY',\n", ''],
  ),
  weakened(
    'xss',
    'responses are HTML, without a policy and without nosniff',
    [API, "'application/json; charset=utf-8'", "'text/html; charset=utf-8'"],
    NO_POLICY,
  ),
  weakened(
    'xss',
    'streams are HTML, without a policy and without nosniff',
    [API, 'reply.type(STREAM_TYPES[stream])', "reply.type('text/html')"],
    NO_POLICY,
  ),
  weakened('development', 'a development server accepts any host name', [
    IDENTITY_FILE,
    'if (name === undefined || !isLoopbackHost(name)) return undefined',
    'if (name === isLoopbackHost.name) return undefined',
  ]),
  weakened('development', 'no check for another site', NO_FORGERY),
]
