import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { breaking, isRaised } from '../src/http/breaking.ts'
import { type Json, openApi } from '../src/http/openapi.ts'

const file = new URL('../openapi.json', import.meta.url)
const UPDATE = 'node --conditions=@redrive/source packages/server/src/http/openapi-main.ts'

describe('the checked-in contract', () => {
  const kept = JSON.parse(readFileSync(file, 'utf8')) as Json

  test('breaks nobody who uses it today, unless its version says so', () => {
    const problems = breaking(kept, openApi())
    expect(isRaised(kept, openApi()) ? [] : problems).toEqual([])
  })

  test(`is what the code says; if it should change, run: ${UPDATE}`, () => {
    expect(openApi()).toEqual(kept)
  })
})

/** A copy of the contract with one thing changed. */
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

describe('a change', () => {
  const BREAKS: Readonly<Record<string, (document: Editable) => void>> = {
    'that takes an operation away': ({ paths }) => delete paths['/api/v1/me'],
    'that takes a method away': ({ paths }) => delete paths['/api/v1/tokens']?.['post'],
    'that takes a parameter away': (document) => parameters(document).pop(),
    'that needs a new parameter': (document) => {
      parameters(document).push({
        name: 'x',
        in: 'query',
        required: true,
        schema: { type: 'string', properties: {} },
      })
    },
    'that narrows a parameter': (document) => {
      parameter(document, 'most').maximum = 100
    },
    'that takes a value of a parameter away': (document) =>
      parameter(document, 'order').enum?.pop(),
    'that needs a new field of a body': (document) =>
      schema(document, 'PlanRequest').required?.push('note'),
    'that takes a field of a body away': (document) => {
      delete schema(document, 'PlanRequest').properties['note']
    },
    'that narrows a field of a body': (document) => {
      const note = schema(document, 'PlanRequest').properties['note'] as Schema
      note.maxLength = 10
    },
    'that takes a way to select away': (document) => {
      schema(document, 'PlanRequest').properties['selection']?.anyOf?.pop()
    },
    'that no longer takes a body': ({ paths }) =>
      delete paths['/api/v1/replays']?.['post']?.requestBody,
    'that takes a field of an answer away': (document) => {
      const group = schema(document, 'Group')
      delete group.properties['title']
      group.required = group.required?.filter((name) => name !== 'title') ?? []
    },
    'that may leave a field of an answer out': (document) => {
      const group = schema(document, 'Group')
      group.required = group.required?.filter((name) => name !== 'title') ?? []
    },
    'that gives a field of an answer another type': (document) => {
      schema(document, 'Group').properties['count'] = { type: 'string', properties: {} }
    },
    'that gives an answer a value that nobody knows': (document) => {
      schema(document, 'Group').properties['state']?.enum?.push('snoozed')
    },
    'of what is in a list': (document) => {
      const history = schema(document, 'DeadLetter').properties['history'] as Schema
      history.items = { type: 'string', properties: {} }
    },
    'that answers another status': ({ paths }) => {
      const { responses } = operation(paths, '/api/v1/replays', 'post')
      responses['200'] = responses['201'] as Operation['responses'][string]
      delete responses['201']
    },
    'that answers another kind of content': ({ paths }) => {
      const { responses } = operation(paths, '/api/v1/dead-letters/export', 'get')
      const [answer] = Object.values(responses['200']?.content ?? {})
      responses['200'] = { content: { 'text/csv': answer as { schema: Schema } } }
    },
  }
  for (const [name, change] of Object.entries(BREAKS)) {
    test(`${name} breaks`, () => {
      const problems = breaking(openApi(), changed(change))
      expect(problems).not.toEqual([])
      expect(problems.every((problem) => problem.includes('/api/v1/'))).toBe(true)
    })
  }

  const FITS: Readonly<Record<string, (document: Editable) => void>> = {
    nothing: () => undefined,
    'a new operation': ({ paths }) => {
      paths['/api/v1/new'] = paths['/api/v1/me'] as Record<string, Operation>
    },
    'a parameter that may be absent': (document) => {
      parameters(document).push({
        name: 'x',
        in: 'query',
        required: false,
        schema: { type: 'string', properties: {} },
      })
    },
    'a wider parameter': (document) => {
      parameter(document, 'most').maximum = 500
      parameter(document, 'order').enum?.push('age')
    },
    'a field of a body that may be absent': (document) => {
      schema(document, 'PlanRequest').properties['x'] = { type: 'string', properties: {} }
    },
    'a new field of an answer': (document) => {
      const group = schema(document, 'Group')
      group.properties['x'] = { type: 'string', properties: {} }
      group.required?.push('x')
    },
    'an answer that has less to understand': (document) => {
      schema(document, 'Group').properties['state']?.enum?.pop()
    },
  }
  for (const [name, change] of Object.entries(FITS)) {
    test(`of ${name} breaks nobody`, () => {
      expect(breaking(openApi(), changed(change))).toEqual([])
    })
  }

  test('that breaks is allowed with a version that says so', () => {
    const version = (is: string) => ({ info: { version: is } }) as Json
    expect(isRaised(version('0.1.0'), version('0.2.0'))).toBe(true)
    expect(isRaised(version('0.1.0'), version('1.0.0'))).toBe(true)
    expect(isRaised(version('1.1.0'), version('2.0.0'))).toBe(true)
    expect(isRaised(version('0.1.0'), version('0.1.1'))).toBe(false)
    expect(isRaised(version('1.1.0'), version('1.2.0'))).toBe(false)
    expect(isRaised(version('0.2.0'), version('0.1.0'))).toBe(false)
  })
})
