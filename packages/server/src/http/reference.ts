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

/** A variable, so that the compiler does not load its types, which need the DOM types. */
const SCALAR: string = '@scalar/fastify-api-reference'

async function plugin(): Promise<FastifyPluginAsync<ReferenceOptions>> {
  const scalar = (await import(SCALAR)) as { default: FastifyPluginAsync<ReferenceOptions> }
  return scalar.default
}

/** Registers the OpenAPI document and the reference page. They contain no data, so they need no authentication. */
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
        // The page loads nothing from other sites and sends no telemetry.
        withDefaultFonts: false,
        telemetry: false,
        hideClientButton: true,
        agent: { disabled: true },
        showDeveloperTools: 'never',
      },
    })
  })
}

/** Returns the policy for the page: allows its inline scripts by hash, and inline styles. */
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
