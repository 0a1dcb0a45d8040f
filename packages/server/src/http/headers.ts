import type { FastifyInstance, FastifyReply } from 'fastify'

/** Content security policy: only resources of this server, no inline code, and no embedding in frames. */
const POLICY: Readonly<Record<string, string>> = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'connect-src': "'self'",
  'img-src': "'self' data:",
  'font-src': "'self'",
  'manifest-src': "'self'",
  'frame-ancestors': "'none'",
  'base-uri': "'none'",
  'form-action': "'self'",
  'require-trusted-types-for': "'script'",
}

/** Changes of the policy for one page; undefined removes a rule. */
export type PolicyChange = Readonly<Record<string, string | undefined>>

const contentPolicy = (change: PolicyChange = {}): string =>
  Object.entries({ ...POLICY, ...change })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]))
    .join('; ')

/** Browser features to disable. Features that are not listed stay enabled. */
const FEATURES = [
  'camera',
  'display-capture',
  'geolocation',
  'microphone',
  'payment',
  'publickey-credentials-get',
  'usb',
]

const HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': contentPolicy(),
  'x-content-type-options': 'nosniff',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'permissions-policy': FEATURES.map((feature) => `${feature}=()`).join(', '),
  // For browsers without support for frame-ancestors.
  'x-frame-options': 'DENY',
}

/** 2 years, the value that browsers recommend. */
const HSTS = 'max-age=63072000; includeSubDomains'

/** Adds the headers to every response. CORS is not enabled, so other sites cannot read responses. */
export function addSecurityHeaders(
  app: FastifyInstance,
  { publicUrl }: { readonly publicUrl: string },
): void {
  const isHttps = new URL(publicUrl).protocol === 'https:'
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers(HEADERS)
    if (isHttps) reply.header('strict-transport-security', HSTS)
  })
}

/** Changes the policy for one page, such as the API reference. */
export function relaxPolicy(reply: FastifyReply, change: PolicyChange): void {
  reply.header('content-security-policy', contentPolicy(change))
}
