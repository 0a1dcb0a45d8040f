import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { relaxPolicy } from './headers.ts'
import { openApi } from './openapi.ts'

const OPENAPI_PATH = '/api/v1/openapi.json'
const REFERENCE_PATH = '/api/reference'

interface ReferenceOptions {
  readonly routePrefix: string
  readonly configuration: Readonly<Record<string, unknown>>
}

/** By a name that the compiler does not follow: its types need those of a browser. */
const SCALAR: string = '@scalar/fastify-api-reference'

async function plugin(): Promise<FastifyPluginAsync<ReferenceOptions>> {
  const scalar = (await import(SCALAR)) as { default: FastifyPluginAsync<ReferenceOptions> }
  return scalar.default
}

/** The contract, for programs and for people. It has no data in it, so that everybody may read it. */
export async function registerReference(app: FastifyInstance): Promise<void> {
  const document = JSON.stringify(openApi())
  app.get(OPENAPI_PATH, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(document),
  )
  await app.register(async (scope) => {
    scope.addHook('onSend', async (_request, reply, payload) => {
      const isPage = String(reply.getHeader('content-type')).startsWith('text/html')
      if (isPage && typeof payload === 'string') relaxPolicy(reply, policyOf(payload))
      return payload
    })
    await scope.register(await plugin(), {
      routePrefix: REFERENCE_PATH,
      configuration: {
        url: OPENAPI_PATH,
        pageTitle: 'Redrive API',
        // Nothing is loaded from anywhere else, and nobody else is told that it was read.
        withDefaultFonts: false,
        telemetry: false,
        hideClientButton: true,
        agent: { disabled: true },
        showDeveloperTools: 'never',
      },
    })
  })
}

/** The page begins with a script of its own, which is named by its hash, and makes styles as it goes. */
function policyOf(page: string): Readonly<Record<string, string | undefined>> {
  const scripts = [...page.matchAll(/<script[^>]*>([^]*?)<\/script>/g)].map(([, text = '']) => text)
  const hashes = scripts.filter((text) => text.trim() !== '').map(hashOf)
  return {
    'script-src': ["'self'", ...hashes].join(' '),
    'style-src': "'self' 'unsafe-inline'",
    'require-trusted-types-for': undefined,
  }
}

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
