import type { FastifyInstance, FastifyReply } from 'fastify'

/** Everything comes from here, nothing is written inline, and no page of ours is shown inside another. */
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

/** What one page has on top of, or instead of, the policy for all; undefined takes a rule away. */
export type PolicyChange = Readonly<Record<string, string | undefined>>

const contentPolicy = (change: PolicyChange = {}): string =>
  Object.entries({ ...POLICY, ...change })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]))
    .join('; ')

/** A feature that is not named can be used, so these are those that can do harm. */
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
  // For what does not know frame-ancestors.
  'x-frame-options': 'DENY',
}

/** 2 years, which is what browsers ask for. */
const HSTS = 'max-age=63072000; includeSubDomains'

/** On every answer. There is no CORS at all: no other site may read anything. */
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

/** For one page that cannot live with the policy for all, such as the reference of the API. */
export function relaxPolicy(reply: FastifyReply, change: PolicyChange): void {
  reply.header('content-security-policy', contentPolicy(change))
}
