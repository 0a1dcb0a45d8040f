import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isRedriveError, resolvePolicy } from '../../packages/core/src/index.ts'
import { configPage } from '../reference/config.ts'
import { errorsPage } from '../reference/errors.ts'
import { eventsPage } from '../reference/events.ts'
import { headersPage } from '../reference/headers.ts'
import { checkPages } from '../reference/main.ts'
import { optionsPage } from '../reference/options.ts'
import { generatePages } from '../reference/pages.ts'
import { policyProblems } from '../reference/policy.ts'
import { type Declaration, declarationOf, readSources, type Sources } from '../reference/sources.ts'
import { makeTree } from './tree.ts'

const ROOT = resolve(import.meta.dirname, '../..')

const manifest = (name: string) =>
  JSON.stringify({
    name: `@redrive/${name}`,
    exports: { '.': { '@redrive/source': './src/index.ts' } },
  })

/** Writes packages, each with the files of its `src`. */
function packagesWith(packages: Record<string, Record<string, string>>): string {
  const files = Object.entries(packages).flatMap(([folder, sources]) => [
    [`packages/${folder}/package.json`, manifest(folder.replace(/.*\//, ''))] as const,
    ...Object.entries(sources).map(
      ([path, text]) => [`packages/${folder}/src/${path}`, text] as const,
    ),
  ])
  return makeTree(Object.fromEntries(files))
}

function find(sources: Sources, path: string, name: string): Declaration {
  const found = declarationOf(sources, sources.file(path), name)
  if (found === undefined) throw new Error(`${path} declares no ${name}`)
  return found
}

describe('the pages of the repository', () => {
  const pages = new Map(generatePages(ROOT).map((page) => [page.path, page]))
  const textOf = (name: string) => pages.get(`docs/reference/${name}.md`)?.text ?? ''

  test('have no problems', () => {
    expect([...pages.values()].flatMap(({ problems }) => problems)).toEqual([])
  })

  test.each(['core', 'api', 'sinks'])('list every error class of %s', async (name) => {
    const path = `../../packages/${name}/src/index.ts`
    const module = (await import(path)) as Readonly<Record<string, unknown>>
    const classes = Object.entries(module).filter(
      ([, value]) => typeof value === 'function' && value.prototype instanceof Error,
    )
    expect(classes).not.toEqual([])
    for (const [className] of classes) {
      expect(textOf('errors')).toContain(`| \`${className}\` | \`@redrive/${name}\` |`)
    }
  })

  test('list every policy option that the resolver accepts', () => {
    const section = (type: string) =>
      textOf('options').split(`### \`${type}\``)[1]?.split('\n### ')[0] ?? ''
    const rowOf = (type: string, name: string) =>
      section(type)
        .split('\n')
        .find((line) => line.startsWith(`| \`${name}\` |`))
    const listed = knownOptions([]).flatMap((name) => {
      const row = rowOf('PolicyOptions', name)
      const type = /\[`(\w+)`\]/.exec(row ?? '')?.[1] ?? ''
      const inner = knownOptions([name]).map((one) => [`${name}.${one}`, rowOf(type, one)] as const)
      return [[name, row] as const, ...inner]
    })
    expect(listed.length).toBeGreaterThan(40)
    expect(listed.filter(([, row]) => row === undefined)).toEqual([])
  })
})

/** Returns the options that the policy resolver accepts at a path, from its error about an unknown one. */
function knownOptions(path: readonly string[]): readonly string[] {
  const options = path.reduceRight<object>((inner, name) => ({ [name]: inner }), { nonsense: 1 })
  try {
    resolvePolicy(options)
  } catch (error) {
    if (!isRedriveError(error)) throw error
    const start = `${[...path, 'nonsense'].join('.')}: unknown option`
    const problem = error.problems.find((one) => one.startsWith(start))
    return /known options: (.*)$/.exec(problem ?? '')?.[1]?.split(', ') ?? []
  }
  return []
}

describe('a page', () => {
  const page = { path: 'docs/reference/errors.md', text: 'new', problems: [] }

  test('is accepted when the file has the same text', () => {
    expect(checkPages(makeTree({ [page.path]: 'new' }), [page])).toEqual([])
  })

  test.each([{ [page.path]: 'old' }, {}])('is rejected when the tree has %j', (files) => {
    expect(checkPages(makeTree(files), [page])).toEqual([
      'docs/reference/errors.md is not up to date; run pnpm reference',
    ])
  })

  test.each([
    ['#closed', []],
    [
      '#opened',
      ['docs/a.md: the link reference/errors.md#opened names a heading that does not exist'],
    ],
  ])('is rejected when a guide links to a missing heading: %s', (anchor, expected) => {
    const text = '# Errors\n\n## `CLOSED`\n'
    const link = `[closed](reference/errors.md${anchor})`
    const root = makeTree({ [page.path]: text, 'docs/a.md': link })
    expect(checkPages(root, [{ ...page, text }])).toEqual(expected)
  })

  test('is rejected when the code lacks a description', () => {
    const root = makeTree({ [page.path]: 'new' })
    expect(checkPages(root, [{ ...page, problems: ['no text'] }])).toEqual(['no text'])
  })
})

describe('options', () => {
  const page = (text: string, others: Record<string, Record<string, string>> = {}) => {
    const packages = { runtime: { 'index.ts': text }, ...others }
    return optionsPage(readSources(packagesWith(packages)))
  }

  test('have a row with type, default and meaning', () => {
    const { text, problems } = page(`
      /** Starts it. */
      export function start(options: StartOptions): void {}
      export interface StartOptions {
        /** The queue. */
        readonly queue: string
        /** Longest wait ('1s'–'1h', default '30s'). */
        readonly wait?: Duration
        /** What to do. \`'a'\`: this. Default \`'a'\`. */
        readonly mode?: 'a' | 'b'
      }`)
    expect(problems).toEqual([])
    expect(text).toContain('Used by `start()`.')
    expect(text).toContain('| `queue` | `string` | required | The queue. |')
    expect(text).toContain("| `wait` | `Duration` | `'30s'` | Longest wait ('1s'–'1h'). |")
    expect(text).toContain("| `mode` | `'a' \\| 'b'` | `'a'` | What to do. `'a'`: this. |")
  })

  test('without a description are named', () => {
    const { problems } = page('export interface StartOptions {\n  readonly queue: string\n}')
    expect(problems).toEqual([
      'packages/runtime/src/index.ts:2: the option StartOptions.queue has no description',
    ])
  })

  test('with a default and nothing else are named', () => {
    const text =
      "export interface StartOptions {\n  /** Default '1s'. */\n  readonly wait?: Duration\n}"
    expect(page(text).problems).toEqual([
      'packages/runtime/src/index.ts:3: the option StartOptions.wait has no description',
    ])
  })

  test('that are optional without a default are named', () => {
    const text =
      'export interface StartOptions {\n  /** The wait. */\n  readonly wait?: Duration\n}'
    expect(page(text).problems).toEqual([
      'packages/runtime/src/index.ts:3: the option StartOptions.wait states no default',
    ])
  })

  const WRONG =
    "packages/runtime/src/index.ts:5: the option StartOptions.wait states the default '2s', and the code uses 1000"
  test.each([
    ['const { wait = WAIT_MS } = options', [WRONG]],
    ['const wait = options.wait ?? WAIT_MS', [WRONG]],
    ['const { wait = 2_000 } = options', []],
  ])('are compared with the code: %s', (statement, expected) => {
    const { problems } = page(`
      const WAIT_MS = 1_000
      export interface StartOptions {
        /** The wait. Default '2s'. */
        readonly wait?: Duration
      }
      export function start(options: StartOptions): void { ${statement} }`)
    expect(problems).toEqual(expected)
  })

  test('of inline objects have rows and need descriptions', () => {
    const { text, problems } = page(`
      export interface StartOptions {
        /** The trip. */
        readonly trip?: { readonly kind: 'a'; readonly most?: number } | { readonly kind: 'b' }
      }`)
    expect(text).toContain("| `trip` | `{ kind: 'a', … } \\| { kind: 'b' }` |")
    expect(text).toContain('| `trip.most` | `number` |')
    expect(problems).toContainEqual(
      expect.stringContaining('StartOptions.trip.most has no description'),
    )
  })

  test('of other packages are linked, and those picked from them are repeated', () => {
    const core = `
      export interface PolicyOptions {
        /** The order. */
        readonly order: string
        /** The time. */
        readonly time: string
      }`
    const { text } = page(
      `import type { PolicyOptions } from '@redrive/core'
       export interface StartOptions extends PolicyOptions {}
       export interface StopOptions extends Pick<PolicyOptions, 'time'> {}
       export type SinkPolicy = Omit<PolicyOptions, 'order'>`,
      { core: { 'index.ts': core } },
    )
    const link = '[`PolicyOptions`](#policyoptions)'
    const [, start = ''] = text.split('### `StartOptions`')
    expect(start).toContain(`Also has the options of ${link}.`)
    expect(text.split('### `StopOptions`')[1]).toContain('| `time` | `string` | required |')
    expect(text).toContain(`The options of ${link} except \`order\`.`)
  })

  test('that are not exported are left out', () => {
    const { text } = page('interface HiddenOptions {\n  readonly a: string\n}\nexport const b = 1')
    expect(text).not.toContain('HiddenOptions')
  })
})

describe('policy options', () => {
  const problems = (options: string) => {
    const sources = readSources(packagesWith({ core: { 'index.ts': options } }))
    const policy = find(sources, 'packages/core/src/index.ts', 'PolicyOptions')
    return policyProblems(sources, policy)
  }

  test.each([
    [
      "Longest run ('1ms'–'12h', default '31s').",
      "the option timeout states the default '31s' for a consumer, and the code uses 30000",
    ],
    ["Longest run. Default '30s'.", "the option timeout does not state its range ('1ms'–'12h')"],
    [
      "Longest run ('1ms'–'1h', default '30s').",
      "the option timeout does not state its range ('1ms'–'12h')",
    ],
  ])('are compared with the resolver: %s', (comment, problem) => {
    const text = `export interface PolicyOptions {\n  /** ${comment} */\n  readonly timeout?: Duration\n}`
    expect(problems(text)).toEqual([`packages/core/src/index.ts:3: ${problem}`])
  })

  test('of sinks are compared with the resolver', () => {
    const text = `
      interface BreakerOptions {
        /** Longest time open ('1ms'–'1h', default '30s', sinks '70s'). */
        readonly maxOpen?: Duration
      }
      export interface PolicyOptions { readonly breaker?: 'off' | BreakerOptions }`
    expect(problems(text)).toEqual([
      expect.stringContaining(
        "breaker.maxOpen states the default '70s' for a sink, and the code uses 60000",
      ),
    ])
  })
})

describe('errors', () => {
  const CODES = `
    export type Code =
      /**
       * It is closed.
       *
       * Open it.
       */
      | 'CLOSED'`
  const CORE = `${CODES}
    /** Every error. */
    export class BaseError extends Error {}
    export const closed = (): Error => new BaseError('CLOSED')`
  const API = `
    export const PROBLEMS = {
      /**
       * It is gone.
       *
       * Create it.
       */
      gone: 410,
    } as const`
  const EXIT = `
    export const EXIT = {
      /** It failed. */
      failure: 1,
    } as const
    export const EXIT_OF_PROBLEM: Record<string, number> = { gone: EXIT.failure }`

  const page = (files: { core?: string; api?: string; cli?: string; sinks?: string }) => {
    const { core = CORE, api = API, cli = EXIT, sinks = '' } = files
    const sources = readSources(
      packagesWith({
        core: { 'index.ts': core },
        api: { 'index.ts': api },
        cli: { 'index.ts': cli },
        sinks: { 'index.ts': sinks },
      }),
    )
    const from = (name: string, declaration: string) =>
      find(sources, `packages/${name}/src/index.ts`, declaration)
    return errorsPage(sources, {
      codes: from('core', 'Code'),
      problems: from('api', 'PROBLEMS'),
      exits: from('cli', 'EXIT'),
      exitOfProblem: from('cli', 'EXIT_OF_PROBLEM'),
    })
  }

  test('have a meaning, an action, and the packages that throw them', () => {
    const { text, problems } = page({})
    expect(problems).toEqual([])
    expect(text).toContain(
      '### `CLOSED`\n\nIt is closed.\n\n**What to do:** Open it.\n\nThrown by `@redrive/core`.',
    )
    expect(text).toContain('### `gone`\n\nIt is gone.\n\n**What to do:** Create it.')
    expect(text).toContain('HTTP status 410, exit code 1.')
    expect(text).toContain('| `1` | It failed. |')
  })

  test('include classes that extend a class of another package', () => {
    const sinks = `
      import { BaseError } from '@redrive/core'
      /** A response. */
      export class HttpError extends BaseError {}`
    expect(page({ sinks }).text).toContain('| `HttpError` | `@redrive/sinks` | A response. |')
  })

  test.each([
    [{ core: CORE.replace('/** Every error. */', '') }, 'the class BaseError has no description'],
    [{ core: CODES }, 'the code CLOSED is never thrown; remove it'],
    [{ core: CORE.replace('* Open it.', '') }, 'the code CLOSED does not state what to do'],
    [{ api: API.replace('* Create it.', '') }, 'the problem gone does not state what to do'],
    [{ cli: EXIT.replace('gone:', 'other:') }, 'the problem gone has no exit code'],
    [{ cli: EXIT.replace('/** It failed. */', '') }, 'the exit code failure has no description'],
  ])('are rejected: %j', (files, problem) => {
    expect(page(files).problems).toEqual([expect.stringContaining(problem)])
  })
})

describe('events', () => {
  const page = (text: string) => {
    const sources = readSources(packagesWith({ runtime: { 'index.ts': text } }))
    const [owner] = sources.packages
    if (owner === undefined) throw new Error('no package')
    return eventsPage(sources, owner, find(sources, 'packages/runtime/src/index.ts', 'Event'))
  }
  const STARTED = `
    /** It started. */
    | {
        readonly type: 'started'
        /** Time, epoch ms. */
        readonly at: number
      }`

  test('have their fields; the first event describes the fields of all', () => {
    const { text, problems } = page(`
      /** Calls the listener. */
      export function onEvent(listener: (event: Event) => void): void {}
      export type Event = ${STARTED}
        /** It stopped. */
        | { readonly type: 'stopped'; readonly at: number }`)
    expect(problems).toEqual([])
    expect(text).toContain('- `onEvent()`: Calls the listener.')
    expect(text).toContain('## `stopped`\n\nIt stopped.')
    expect(text.split('## `stopped`')[1]).toContain('| `at` | `number` | Time, epoch ms. |')
  })

  test('of an intersection also have the fields of its other types', () => {
    const { text, problems } = page(`
      interface Names {
        /** Name of the handler. */
        readonly handler: string
      }
      type Inner = ${STARTED}
      export type Event = (Inner & Names) | { readonly type: 'stopped'; readonly at: number }`)
    expect(problems).toEqual([
      'packages/runtime/src/index.ts:13: the event stopped has no description',
    ])
    const [started] = (text.split('## `started`')[1] ?? '').split('## `stopped`')
    expect(started).toContain('| `handler` | `string` | Name of the handler. |')
  })

  test('of a union of another name are included, and values of fields are listed', () => {
    const { text, problems } = page(`
      type Why =
        /** On request. */
        | 'asked'
        | 'broken'
      type Other =
        /** It stopped. */
        | {
            readonly type: 'stopped'
            /** The reason. */
            readonly why: Why
          }
        | never
      export type Event = Other ${STARTED}`)
    expect(text).toContain("| `'asked'` | On request. |")
    expect(problems).toEqual([
      expect.stringContaining("the value 'broken' of Why has no description"),
    ])
  })

  test('without a description are named, and so are their fields', () => {
    const second = "| { readonly type: 'stopped'; readonly until: number }"
    expect(page(`export type Event = ${STARTED} ${second}`).problems).toEqual([
      expect.stringContaining('the event stopped has no description'),
      expect.stringContaining('the event stopped: the field until has no description'),
    ])
  })
})

describe('headers', () => {
  const TABLE = `
    /** Headers of copies. More text. */
    export interface CopyHeaderTable {
      /** Whole number. Number of attempts. */
      readonly 'redrive-attempt': string
    }`
  const page = (text: string) =>
    headersPage(readSources(packagesWith({ core: { 'index.ts': text } })))

  test('have a format and a meaning', () => {
    const { text, problems } = page(`${TABLE}\nexport const name = 'redrive-attempt'`)
    expect(problems).toEqual([])
    expect(text).toContain('## Headers of copies\n\nMore text. Package: `@redrive/core`.')
    expect(text).toContain('| `redrive-attempt` | Whole number | Number of attempts. |')
  })

  test('that no table lists are named', () => {
    expect(page(`${TABLE}\nexport const name = 'redrive-new'`).problems).toEqual([
      'packages/core/src/index.ts:7: no interface with the suffix HeaderTable lists the header redrive-new',
    ])
  })

  test('without a meaning are named', () => {
    expect(page(TABLE.replace(' Number of attempts.', '')).problems).toEqual([
      expect.stringContaining('the header redrive-attempt needs a comment'),
    ])
  })
})

describe('config keys and variables', () => {
  const page = (schema: object, cli = '') => {
    const environment = `
      export interface Environment {
        /** The URL. */
        readonly REDRIVE_URL?: string
      }`
    const root = packagesWith({
      cli: { 'index.ts': `${environment}\n${cli}` },
      server: { '../schema.json': JSON.stringify(schema) },
    })
    const sources = readSources(root)
    return configPage(root, sources, {
      schema: 'packages/server/schema.json',
      environment: find(sources, 'packages/cli/src/index.ts', 'Environment'),
      readers: ['packages/cli'],
    })
  }
  const whole = [{ type: 'integer', minimum: 1, maximum: 1000 }, { type: 'string' }]

  test('have a type, a default and a meaning', () => {
    const { text, problems } = page({
      properties: {
        size: { anyOf: whole, description: 'The size (1–1,000, default 5)' },
        sources: {
          description: 'Sources by name',
          additionalProperties: {
            properties: { url: { type: 'string', description: 'The URL' } },
            required: ['url'],
          },
        },
      },
      required: ['sources'],
    })
    expect(problems).toEqual([])
    expect(text).toContain('| `size` | whole number (1–1,000) | `5` | The size. |')
    expect(text).toContain('| `url` | text | required | The URL. |')
    expect(text).toContain('## `sources.NAME`')
    expect(text).toContain('| `REDRIVE_URL` | The URL. |')
  })

  test.each([
    [{ type: 'string' }, 'the key one has no description'],
    [{ type: 'string', description: 'The text' }, 'the key one states no default'],
    [
      { type: 'string', description: "The text. Default 'a'", default: 'b' },
      "the key one states the default 'a', and the schema has b",
    ],
  ])('are rejected: %j', (one, problem) => {
    expect(page({ properties: { one } }).problems).toContain(
      `packages/server/schema.json: ${problem}`,
    )
  })

  test('are rejected when a variable is not listed', () => {
    expect(page({}, "export const token = process.env['REDRIVE_TOKEN']").problems).toEqual([
      'packages/cli/src/index.ts:6: Environment in packages/cli/src/index.ts does not list the variable REDRIVE_TOKEN',
    ])
  })
})
