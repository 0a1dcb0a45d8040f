/** Generates the page of the HTTP API from its OpenAPI document. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { code, type Page, pageText, table } from './markdown.ts'

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: { readonly description?: string }
}

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly 'x-redrive-needs'?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: object
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const FILE = 'packages/server/openapi.json'

export function httpApiPage(root: string): Page {
  const { paths } = JSON.parse(readFileSync(join(root, FILE), 'utf8')) as Document
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const rows = operations.map(({ path, method, operation }) => [
    `[${operation.operationId}](#${operation.operationId.toLowerCase()})`,
    code(`${method.toUpperCase()} ${path}`),
    operation.summary,
    code(operation['x-redrive-needs'] ?? 'signed in'),
  ])
  const blocks = [
    'Every operation of the server. Errors are `application/problem+json`: see [problems](errors.md). For TypeScript, use the client of [`@redrive/api`](../../packages/api/README.md). `packages/server/openapi.json` also has the schemas of bodies and responses, and the server shows them at `/api/reference`.',
    table(['operation', 'request', 'effect', 'permission'], rows),
    ...operations.flatMap(({ path, method, operation }) => [
      `## ${operation.operationId}`,
      `${operation.summary}.`,
      code(`${method.toUpperCase()} ${path}`),
      parametersOf(operation),
      operation.requestBody === undefined ? '' : 'It has a JSON body.',
    ]),
  ]
  return { text: pageText('HTTP API', [FILE], blocks), problems: [] }
}

function parametersOf({ parameters = [] }: Operation): string {
  if (parameters.length === 0) return ''
  return table(
    ['parameter', 'in', 'required', 'meaning'],
    parameters.map((one) => [
      code(one.name),
      one.in,
      one.required === true ? 'yes' : '',
      (one.description ?? one.schema?.description ?? '').replaceAll('<', '&lt;'),
    ]),
  )
}
