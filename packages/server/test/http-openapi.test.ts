import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { breaking, isRaised } from '../src/http/breaking-changes.ts'
import { type Json, openApi } from '../src/http/openapi.ts'

const file = new URL('../openapi.json', import.meta.url)
const UPDATE = 'node --conditions=@redrive/source packages/server/src/http/openapi-main.ts'

describe('the committed openapi.json', () => {
  const committed = JSON.parse(readFileSync(file, 'utf8')) as Json

  test('has no breaking change unless its version is raised', () => {
    const problems = breaking(committed, openApi())
    expect(isRaised(committed, openApi()) ? [] : problems).toEqual([])
  })

  test(`equals the generated document; to update it, run: ${UPDATE}`, () => {
    expect(openApi()).toEqual(committed)
  })
})

/** Returns a copy of the document with one change. */
function changed(change: (document: Editable) => void): Json {
  const copy = structuredClone(openApi()) as unknown as Editable
  change(copy)
  return copy as unknown as Json
}

interface Schema {
  type?: string
  required?: string[]
  properties: Record<string, Schema>
  enum?: string[]
  items?: Schema
  anyOf?: Schema[]
  maximum?: number
  maxLength?: number
  additionalProperties?: unknown
}
interface Operation {
  parameters: { name: string; in: string; required: boolean; schema: Schema }[]
  requestBody?: unknown
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}
interface Editable {
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

const parameters = (document: Editable) =>
  document.paths['/api/v1/groups']?.['get']?.parameters ?? []
const parameter = (document: Editable, name: string) =>
  parameters(document).find((one) => one.name === name)?.schema as Schema
const operation = (paths: Editable['paths'], path: string, method: string) =>
  (paths[path] ?? {})[method] as Operation
const schema = (document: Editable, name: string) => document.components.schemas[name] as Schema

describe('a change of the API', () => {
  const BREAKS: Readonly<Record<string, (document: Editable) => void>> = {
    'that removes an operation': ({ paths }) => delete paths['/api/v1/me'],
    'that removes a method': ({ paths }) => delete paths['/api/v1/tokens']?.['post'],
    'that removes a parameter': (document) => parameters(document).pop(),
    'that adds a required parameter': (document) => {
      parameters(document).push({
        name: 'x',
        in: 'query',
        required: true,
        schema: { type: 'string', properties: {} },
      })
    },
    'that narrows a parameter': (document) => {
      parameter(document, 'limit').maximum = 100
    },
    'that removes a value of a parameter': (document) => parameter(document, 'order').enum?.pop(),
    'that makes a field of a body required': (document) =>
      schema(document, 'PlanRequest').required?.push('note'),
    'that removes a field of a body': (document) => {
      delete schema(document, 'PlanRequest').properties['note']
    },
    'that narrows a field of a body': (document) => {
      const note = schema(document, 'PlanRequest').properties['note'] as Schema
      note.maxLength = 10
    },
    'that removes a kind of selection': (document) => {
      schema(document, 'PlanRequest').properties['selection']?.anyOf?.pop()
    },
    'that removes a body': ({ paths }) => delete paths['/api/v1/replays']?.['post']?.requestBody,
    'that removes a field of a response': (document) => {
      const group = schema(document, 'Group')
      delete group.properties['title']
      group.required = group.required?.filter((name) => name !== 'title') ?? []
    },
    'that makes a field of a response optional': (document) => {
      const group = schema(document, 'Group')
      group.required = group.required?.filter((name) => name !== 'title') ?? []
    },
    'that changes the type of a field of a response': (document) => {
      schema(document, 'Group').properties['count'] = { type: 'string', properties: {} }
    },
    'that adds a value to an enum of a response': (document) => {
      schema(document, 'Group').properties['state']?.enum?.push('snoozed')
    },
    'that changes the type of list items': (document) => {
      const history = schema(document, 'DeadLetter').properties['history'] as Schema
      history.items = { type: 'string', properties: {} }
    },
    'that changes the status': ({ paths }) => {
      const { responses } = operation(paths, '/api/v1/replays', 'post')
      responses['200'] = responses['201'] as Operation['responses'][string]
      delete responses['201']
    },
    'that changes the content type': ({ paths }) => {
      const { responses } = operation(paths, '/api/v1/dead-letters/export', 'get')
      const [answer] = Object.values(responses['200']?.content ?? {})
      responses['200'] = { content: { 'text/csv': answer as { schema: Schema } } }
    },
  }
  for (const [name, change] of Object.entries(BREAKS)) {
    test(`${name} is breaking`, () => {
      const problems = breaking(openApi(), changed(change))
      expect(problems).not.toEqual([])
      expect(problems.every((problem) => problem.includes('/api/v1/'))).toBe(true)
    })
  }

  const COMPATIBLE: Readonly<Record<string, (document: Editable) => void>> = {
    'that changes nothing': () => undefined,
    'that adds an operation': ({ paths }) => {
      paths['/api/v1/new'] = paths['/api/v1/me'] as Record<string, Operation>
    },
    'that adds an optional parameter': (document) => {
      parameters(document).push({
        name: 'x',
        in: 'query',
        required: false,
        schema: { type: 'string', properties: {} },
      })
    },
    'that widens a parameter': (document) => {
      parameter(document, 'limit').maximum = 500
      parameter(document, 'order').enum?.push('age')
    },
    'that adds an optional field to a body': (document) => {
      schema(document, 'PlanRequest').properties['x'] = { type: 'string', properties: {} }
    },
    'that adds a field to a response': (document) => {
      const group = schema(document, 'Group')
      group.properties['x'] = { type: 'string', properties: {} }
      group.required?.push('x')
    },
    'that removes a value from an enum of a response': (document) => {
      schema(document, 'Group').properties['state']?.enum?.pop()
    },
  }
  for (const [name, change] of Object.entries(COMPATIBLE)) {
    test(`${name} is not breaking`, () => {
      expect(breaking(openApi(), changed(change))).toEqual([])
    })
  }

  test('that is breaking requires a new major version, or a new minor one before 1.0', () => {
    const version = (number: string) => ({ info: { version: number } }) as Json
    expect(isRaised(version('0.1.0'), version('0.2.0'))).toBe(true)
    expect(isRaised(version('0.1.0'), version('1.0.0'))).toBe(true)
    expect(isRaised(version('1.1.0'), version('2.0.0'))).toBe(true)
    expect(isRaised(version('0.1.0'), version('0.1.1'))).toBe(false)
    expect(isRaised(version('1.1.0'), version('1.2.0'))).toBe(false)
    expect(isRaised(version('0.2.0'), version('0.1.0'))).toBe(false)
  })
})
