import type { Operation } from '@redrive/api'
import { isMutation, problem, type Route, ROUTES } from '@redrive/api/internal'
import { z } from 'zod'

/** Version of the API. A breaking change raises the major number, or the minor number before 1.0. */
const API_VERSION = '0.2.0'

export type Json = { readonly [name: string]: unknown }

/** Returns the OpenAPI 3.1 document. It depends only on the table of routes. */
export function openApi(): Json {
  const schemas = new Schemas()
  const paths: Record<string, Record<string, Json>> = {}
  for (const [operation, route] of Object.entries(ROUTES) as [Operation, Route][]) {
    const path = (paths[route.path] ??= {})
    path[route.method.toLowerCase()] = operationOf(operation, route, schemas)
  }
  schemas.add('Problem', problem)
  return {
    openapi: '3.1.0',
    info: { title: 'Redrive', version: API_VERSION, description: ABOUT, license: LICENSE },
    servers: [{ url: '/' }],
    security: [{ token: [] }, { session: [] }],
    paths,
    components: { schemas: schemas.all, securitySchemes: SECURITY },
  }
}

const ABOUT = `Dead letters, their failure groups, and their replays.

Timestamps are epoch milliseconds.

Every mutation requires the header \`Idempotency-Key\`. For 24 hours, a repeated request with the same key gets the
first response and is not applied twice. A request that was interrupted returns \`in_progress\` for a minute.
After that, a plan, selection, approval, cancellation or revocation runs again. Every other operation returns \`conflict\`:
check whether it was applied, then retry with a new key.

Problems are \`application/problem+json\` with a stable \`code\`. A page that is not the last has \`nextCursor\`; pass
it as \`cursor\` to get the next page.`
const LICENSE = { name: 'Apache-2.0', identifier: 'Apache-2.0' }

const SECURITY: Json = {
  token: { type: 'http', scheme: 'bearer', description: 'An API token, which begins with `rdv_`.' },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: '__Host-redrive',
    description:
      'A browser session, created by /auth/login. Mutations require the header `X-Redrive-CSRF`.',
  },
}

function operationOf(operation: Operation, route: Route, schemas: Schemas): Json {
  const parameters = [
    ...parametersOf('path', route.params, schemas),
    ...parametersOf('query', route.query, schemas),
    ...headersOf(route),
  ]
  return {
    operationId: operation,
    summary: route.summary,
    'x-redrive-needs': route.needs,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === undefined ? {} : { requestBody: bodyOf(route.body, schemas) }),
    responses: { [String(route.status ?? 200)]: answerOf(route, schemas), default: PROBLEM },
  }
}

const PROBLEM: Json = {
  description: 'A problem',
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
}

function parametersOf(location: string, schema: z.ZodObject | undefined, schemas: Schemas): Json[] {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = schemas.of(schema, 'input') as {
    readonly properties?: Readonly<Record<string, Json>>
    readonly required?: readonly string[]
  }
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: location,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }))
}

function headersOf(route: Route): Json[] {
  const header = (name: string, required: boolean, description: string): Json => ({
    name,
    in: 'header',
    required,
    description,
    schema: { type: 'string' },
  })
  const { ifMatch } = route
  return [
    ...(isMutation(route)
      ? [header('Idempotency-Key', true, 'Id of the request. Use a new UUID for each request')]
      : []),
    ...(ifMatch === true ? [header('If-Match', true, 'ETag of the version that you read')] : []),
    ...(ifMatch === 'edit'
      ? [header('If-Match', false, 'ETag of the dead letter; required with `change.edit`')]
      : []),
  ]
}

const bodyOf = (schema: z.ZodType, schemas: Schemas): Json => ({
  required: true,
  content: { 'application/json': { schema: schemas.of(schema, 'input') } },
})

const TYPES = { events: 'text/event-stream', lines: 'application/jsonl' } as const

function answerOf({ output, status, stream, summary }: Route, schemas: Schemas): Json {
  if (status === 204) return { description: 'Done' }
  const type = stream === undefined ? 'application/json' : TYPES[stream]
  return { description: summary, content: { [type]: { schema: schemas.of(output, 'output') } } }
}

/** Collects the schemas with a name. Other schemas are written inline. */
class Schemas {
  readonly #named = new Map<string, Json>()

  get all(): Json {
    return Object.fromEntries([...this.#named].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  add(name: string, schema: z.ZodType): void {
    this.#keep(name, this.of(schema, 'output'))
  }

  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const made = z.toJSONSchema(schema, { io, reused: 'inline', unrepresentable: 'any' })
    const {
      $schema: _,
      $defs = {},
      id,
      ...rest
    } = cleaned(made, io) as Json & {
      readonly $defs?: Readonly<Record<string, Json>>
      readonly id?: string
    }
    for (const [name, one] of Object.entries($defs)) this.#keep(name, withoutId(one))
    if (id === undefined) return rest
    this.#keep(id, rest)
    return { $ref: `#/components/schemas/${id}` }
  }

  #keep(name: string, schema: Json): void {
    const known = this.#named.get(name)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`Two schemas have the name "${name}". Rename one of them.`)
    }
    this.#named.set(name, schema)
  }
}

const withoutId = ({ id: _, ...rest }: Json): Json => rest

/** Rewrites references. Removes `additionalProperties: false` from responses, which may get more fields later. */
function cleaned(value: unknown, io: 'input' | 'output'): unknown {
  if (Array.isArray(value)) return value.map((one) => cleaned(one, io))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]): [string, unknown][] => {
      if (name === 'additionalProperties' && one === false && io === 'output') return []
      if (name === '$ref' && typeof one === 'string') {
        return [[name, one.replace('#/$defs/', '#/components/schemas/')]]
      }
      return [[name, cleaned(one, io)]]
    }),
  )
}
