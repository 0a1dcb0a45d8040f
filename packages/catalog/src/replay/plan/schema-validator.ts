import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { RedriveError } from '@redrive/core'

/** 1 s for one body: a pattern of the schema can run forever on a hostile text. */
const CHECK_MS = 1_000
/** 10 s to start and compile, once: a busy machine needs seconds to load the validator. */
const START_MS = 10_000
/** 64 MiB: a schema or body that needs more memory is not checked. */
const MEMORY_MB = 64

/**
 * Runs in a separate thread, which can be terminated. Error texts contain only property names of the schema, not
 * of the body. A user who reads the reason of a skipped item may lack permission to see the body, and a property
 * name in a body can be personal data.
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

/** Checks bodies against JSON Schemas (draft 2020-12) by event type; the type '' is for all other events. */
export class Validator {
  readonly #schemas: ReadonlyMap<string, unknown>
  readonly #totalMs: number
  #worker: Worker | undefined
  #spentMs = 0

  /** `totalMs`: time for all checks together. One check can start shortly before it ends. */
  constructor(schemas: ReadonlyMap<string, unknown>, totalMs: number) {
    this.#schemas = schemas
    this.#totalMs = totalMs
  }

  /** Whether the time for all checks together has passed. */
  get isOutOfTime(): boolean {
    return this.#spentMs >= this.#totalMs
  }

  knows(type: string | null): boolean {
    return this.#schemaOf(type) !== undefined
  }

  /** Returns the problem of a body, or undefined if it is valid. */
  async problemOf(type: string | null, body: unknown): Promise<string | undefined> {
    const name = this.#schemaOf(type)
    if (name === undefined) return undefined
    const startedAt = performance.now()
    try {
      return await this.#check(name, body)
    } finally {
      this.#spentMs += performance.now() - startedAt
    }
  }

  async #check(type: string, body: unknown): Promise<string | undefined> {
    this.#worker ??= await startWorker(this.#schemas)
    this.#worker.postMessage({ type, body })
    const result = await nextMessage(this.#worker, CHECK_MS)
    if (result !== TIMED_OUT) return result
    await this.close()
    return `the check of the body took longer than ${CHECK_MS} ms`
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

const TIMED_OUT = Symbol('timed out')

async function startWorker(schemas: ReadonlyMap<string, unknown>): Promise<Worker> {
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
  const message = await nextMessage(worker, START_MS)
  if (message === 'ready') return worker
  await worker.terminate()
  throw new RedriveError(
    'POLICY_INVALID',
    `The JSON Schema of the source could not be compiled within ${START_MS} ms. Simplify it.`,
  )
}

const fileOf = (name: string) => fileURLToPath(import.meta.resolve(name))

/** Returns the next message of the thread. Rejects if the thread fails. */
function nextMessage(
  worker: Worker,
  withinMs: number,
): Promise<string | undefined | typeof TIMED_OUT> {
  const { promise, resolve, reject } = Promise.withResolvers<
    string | undefined | typeof TIMED_OUT
  >()
  const timer = setTimeout(resolve, withinMs, TIMED_OUT)
  const onError = (cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause)
    const message = `The JSON Schema of the source is invalid: ${why}`
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
