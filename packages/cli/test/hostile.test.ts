import { appendFileSync } from 'node:fs'
import type { Operation } from '@redrive/api'
import { type Route, ROUTES } from '@redrive/api/internal'
import { FIRST_CYCLE } from '@redrive/core'
import type { DeadLetterSource, DrainedDeadLetter } from '@redrive/runtime'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { peek } from '../src/commands/peek.ts'
import type { Io } from '../src/io.ts'
import { safe, safeJson } from '../src/text/safe.ts'
import { type FakeServer, fakeServer, type Handlers } from './fake-server.ts'
import { GROUP_A, MESSAGE_A, RUN_A } from './things.ts'
import { run } from './world.ts'

/** Characters that may never reach a terminal, except for line ends of the output itself. */
const RAW = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
const rawIn = (text: string) => RAW.exec(text.replaceAll('\n', ''))?.[0]

/** One example of each kind. Each one affects some terminal or reader. */
const WORST = [
  '\u001b]0;owned\u0007',
  '\u001b[2J',
  '\u009b31m',
  '\u0000',
  '\b\b\b',
  '\r',
  '\n',
  '\t',
  '\u007f',
  '\u202e',
  '\u2066',
  '\u2069',
  '\u200b',
  '\u200d',
  '\u200f',
  '\ufeff',
  '\ud800',
  '\udc00',
  '\u2028',
  '\u061c',
  '\u00ad',
  '\u{e0041}',
  'a\u0301\u0301\u0301',
  '表',
  '🙂',
]
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...WORST), fc.string({ unit: 'binary', maxLength: 5 })), {
    minLength: 1,
    maxLength: 6,
  })
  .map((parts) => parts.join('x'))

interface Def {
  readonly type: string
  readonly innerType?: z.ZodType
  readonly element?: z.ZodType
  readonly valueType?: z.ZodType
  readonly keyType?: z.ZodType
  readonly entries?: Readonly<Record<string, string>>
  readonly options?: readonly z.ZodType[]
  readonly format?: string
}

/** Returns a value that matches the schema, with hostile text wherever the schema allows text. */
function made(schema: z.ZodType, text: () => string): unknown {
  const { def } = schema as unknown as { readonly def: Def }
  switch (def.type) {
    case 'string':
      return def.format === 'uuid' ? GROUP_A : def.format === 'base64' ? 'AAEb' : text()
    case 'number':
      return 3
    case 'boolean':
      return false
    case 'unknown':
      return { [text()]: text() }
    case 'enum':
      return Object.values(def.entries ?? {})[0]
    case 'optional':
    case 'nullable':
    case 'default':
    case 'readonly':
      return made(def.innerType as z.ZodType, text)
    case 'array':
      return [made(def.element as z.ZodType, text), made(def.element as z.ZodType, text)]
    case 'record': {
      const isListed = (def.keyType as unknown as { def: Def } | undefined)?.def.type === 'enum'
      const key = isListed ? 'transient' : text()
      return { [key]: made(def.valueType as z.ZodType, text) }
    }
    case 'object': {
      const { shape } = schema as unknown as { readonly shape: Readonly<Record<string, z.ZodType>> }
      return Object.fromEntries(Object.entries(shape).map(([name, one]) => [name, made(one, text)]))
    }
    case 'undefined':
      return undefined
    default:
      throw new Error(`no value for ${def.type}`)
  }
}

let producerText = 'x'
let server: FakeServer
beforeAll(async () => {
  const handlers = Object.fromEntries(
    (Object.entries(ROUTES) as [Operation, Route][]).map(([operation, route]) => [
      operation,
      () => {
        const value = made(route.output, () => producerText) as Record<string, unknown>
        // The run ends, so that `replay watch` ends too.
        if (operation === 'watchReplay')
          return [
            { ...value, state: 'running' },
            { ...value, state: 'paused' },
            { ...value, state: 'done' },
          ]
        return route.stream === undefined ? value : [value]
      },
    ]),
  ) as Handlers
  server = await fakeServer(handlers)
})
afterAll(() => server.close())

const COMMANDS: readonly (readonly string[])[] = [
  ['sources'],
  ['whoami'],
  ['groups', 'list'],
  ['groups', 'show', GROUP_A],
  ['groups', 'change', GROUP_A, '--state', 'muted'],
  ['messages', 'list'],
  ['messages', 'show', MESSAGE_A],
  ['messages', 'show', MESSAGE_A, '--unmasked', '--reason', 'ticket 7'],
  ['messages', 'export'],
  ['replay', 'plan', `group:${GROUP_A}`],
  ['replay', 'list'],
  ['replay', 'show', RUN_A, '--items', 'failed_again'],
  ['replay', 'start', RUN_A, '--yes'],
  ['replay', 'pause', RUN_A],
  ['replay', 'acknowledge-restore', '--yes'],
  ['replay', 'watch', RUN_A],
  ['approve', RUN_A],
  ['edit', MESSAGE_A, '--yes'],
  ['discard', `group:${GROUP_A}`],
  ['restore', '--id', MESSAGE_A],
  ['set-outcome', '--id', MESSAGE_A, '--as', 'open'],
  ['token', 'list'],
  ['token', 'create', 'x', '--allow', 'view', '--source', '*'],
  ['audit', 'list'],
]

/** An editor that adds a line. */
const edit = (path: string) => {
  appendFileSync(path, '\nmore')
  return 0
}

describe('text of producers', () => {
  test.each(COMMANDS)('is printed by these commands: %s %s', async (...args) => {
    producerText = 'peculiar'
    const { code, stdout, stderr } = await run(args, { env: server.env, answers: true, edit })
    expect([0, 5, 6]).toContain(code)
    expect(stderr).not.toContain('Error:')
    expect(stdout).not.toBe('')
  })

  test.each(COMMANDS)('never reaches a terminal raw: %s %s', async (...args) => {
    await fc.assert(
      fc.asyncProperty(hostile, fc.boolean(), async (text, isTTY) => {
        producerText = text
        const { stdout, stderr, questions } = await run(args, {
          env: server.env,
          isTTY,
          answers: true,
          edit,
        })
        // The progress bar uses these two control sequences.
        const messages = stderr.replaceAll('\r', '').replaceAll('\u001b[K', '')
        expect([stdout, messages, ...questions].map(rawIn)).toEqual([
          undefined,
          undefined,
          ...questions.map(() => undefined),
        ])
      }),
      { numRuns: 12 },
    )
  })

  test.each(COMMANDS)('is escaped in JSON, which stays valid: %s %s', async (...args) => {
    await fc.assert(
      fc.asyncProperty(hostile, async (text) => {
        producerText = text
        const { stdout } = await run([...args, '--jsonl'], { env: server.env, answers: true })
        expect(rawIn(stdout)).toBeUndefined()
        for (const line of stdout.split('\n').filter((one) => one !== '')) JSON.parse(line)
      }),
      { numRuns: 5 },
    )
  })

  test('is printed with visible escapes', () => {
    expect(safe('a\u001b[2Jb\u202ec\nd\u{e0041}\ud800')).toBe(
      'a\\u001b[2Jb\\u202ec\\nd\\udb40\\udc41\\ud800',
    )
    expect(safe('Zoë 表 🙂 naïve')).toBe('Zoë 表 🙂 naïve')
  })

  test('does not change the JSON document', () => {
    fc.assert(
      fc.property(fc.jsonValue(), hostile, (value, text) => {
        const given = { [text]: [value, text] }
        expect(JSON.parse(safeJson(given))).toEqual(JSON.parse(JSON.stringify(given)))
        expect(rawIn(safeJson(given, 2))).toBeUndefined()
      }),
    )
  })

  test('never reaches a terminal raw from a peek', async () => {
    await fc.assert(
      fc.asyncProperty(hostile, fc.option(fc.constant(1)), async (text, show) => {
        const source = sourceOf(text)
        let written = ''
        const output = {
          write: (one: string) => {
            written += one
          },
          isTTY: true,
          columns: 100,
          hasColor: false,
        }
        const io = { stdout: output, stderr: output, now: () => 0 } as unknown as Io
        const open = () =>
          Promise.resolve({ source, trace: undefined, close: () => Promise.resolve() })
        await peek(
          io,
          open,
          { address: 'x', queue: text },
          { limit: 5, ...(show === null ? {} : { show }) },
        )
        expect(rawIn(written)).toBeUndefined()
      }),
      { numRuns: 50 },
    )
  })
})

function sourceOf(text: string): DeadLetterSource {
  const cycle = {
    ...FIRST_CYCLE,
    history: [
      {
        number: 1,
        at: 1,
        waitedMs: 0,
        class: 'unknown' as const,
        signature: text,
        code: text,
        type: text,
        message: text,
        counted: true,
      },
    ],
  }
  const delivery = {
    id: text,
    source: text,
    lane: text,
    key: text,
    type: text,
    bytes: Buffer.from(text),
    contentType: text,
    headers: { [text]: text },
    cycle,
    deliveryCount: 1,
    replayId: undefined,
    headerProblems: [],
  }
  const one: DrainedDeadLetter = {
    delivery,
    origin: text,
    envelope: { [text]: text },
    quarantined: false,
    class: 'unknown',
    reason: text,
    handler: text,
    identity: 'stable',
  }
  let left = [one]
  const nothing = () => Promise.resolve()
  return {
    source: text,
    replay: 'copy',
    depth: () => Promise.resolve(1),
    drain: () => {
      const deadLetters = left
      left = []
      return Promise.resolve({ deadLetters, release: nothing, abandon: nothing })
    },
    close: nothing,
  } as unknown as DeadLetterSource
}
