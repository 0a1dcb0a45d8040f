import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { RedriveError } from '@redrive/core'

/** 1 s for one body: a pattern of the schema can take for ever on a hostile text. */
const CHECK_MS = 1_000
/** 10 s to start and compile, which happens once: a busy machine needs seconds to load the validator. */
const START_MS = 10_000
/** 64 MiB: a schema or body that needs more is not one to check here. */
const MEMORY_MB = 64

/**
 * In a thread of its own, which can be ended. Of the body it names only what the schema names: who reads why an
 * item was skipped may not see the body, and a name in it can be somebody's.
 */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads')
const { Ajv2020 } = require(workerData.ajv)
const formats = require(workerData.formats)
const ajv = new Ajv2020({ strict: false, allErrors: false, logger: false })
formats.default(ajv)
const names = new Set()
function gather(schema) {
  if (typeof schema !== 'object' || schema === null) return
  for (const name of Object.keys(schema.properties ?? {})) names.add(name)
  for (const part of Object.values(schema)) gather(part)
}
const known = (step) => names.has(step.replaceAll('~1', '/').replaceAll('~0', '~')) ? step : '*'
const place = (path) => path.split('/').slice(1).map((step) => '/' + known(step)).join('')
const checks = new Map(workerData.schemas.map(([type, schema]) => [type, ajv.compile(schema)]))
for (const [, schema] of workerData.schemas) gather(schema)
parentPort.on('message', ({ type, body }) => {
  const check = checks.get(type)
  const errors = check(body) ? [] : check.errors
  const texts = errors.map(({ instancePath, message }) => 'body' + place(instancePath) + ' ' + message)
  parentPort.postMessage(texts.length === 0 ? undefined : texts.join(', '))
})
parentPort.postMessage('ready')
`

/** Checks bodies against JSON Schemas (draft 2020-12), by the type of the event; '' is for all others. */
export class Validator {
  readonly #schemas: ReadonlyMap<string, unknown>
  #worker: Worker | undefined

  constructor(schemas: ReadonlyMap<string, unknown>) {
    this.#schemas = schemas
  }

  knows(type: string | null): boolean {
    return this.#schemaOf(type) !== undefined
  }

  /** What is wrong with the body; undefined: nothing. */
  async problemOf(type: string | null, body: unknown): Promise<string | undefined> {
    const name = this.#schemaOf(type)
    if (name === undefined) return undefined
    this.#worker ??= await started(this.#schemas)
    this.#worker.postMessage({ type: name, body })
    const answer = await answerOf(this.#worker, CHECK_MS)
    if (answer !== TOO_LONG) return answer
    await this.close()
    return `checking it took longer than ${CHECK_MS} ms`
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
    this.#worker = undefined
  }

  #schemaOf(type: string | null): string | undefined {
    if (type !== null && this.#schemas.has(type)) return type
    return this.#schemas.has('') ? '' : undefined
  }
}

const TOO_LONG = Symbol('too long')

async function started(schemas: ReadonlyMap<string, unknown>): Promise<Worker> {
  const worker = new Worker(PROGRAM, {
    eval: true,
    workerData: {
      schemas: [...schemas],
      ajv: fileOf('ajv/dist/2020'),
      formats: fileOf('ajv-formats'),
    },
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
  })
  worker.unref()
  const answer = await answerOf(worker, START_MS)
  if (answer === 'ready') return worker
  await worker.terminate()
  throw new RedriveError('POLICY_INVALID', 'The schema of the consumer takes too long to compile.')
}

const fileOf = (name: string) => fileURLToPath(import.meta.resolve(name))

/** What the thread says next, or what became of it. */
function answerOf(worker: Worker, withinMs: number): Promise<string | undefined | typeof TOO_LONG> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined | typeof TOO_LONG>()
  const timer = setTimeout(resolve, withinMs, TOO_LONG)
  const onError = (cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause)
    const message = `The schema of the consumer cannot be used: ${why}`
    reject(new RedriveError('POLICY_INVALID', message, { cause }))
  }
  worker.once('message', resolve)
  worker.once('error', onError)
  return promise.finally(() => {
    clearTimeout(timer)
    worker.off('message', resolve)
    worker.off('error', onError)
  })
}
