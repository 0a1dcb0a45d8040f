import type { ReportedFailure } from '@redrive/core'
import type { Draw } from './draw.ts'

/** One failure: thrown by a handler, or reported in the headers of another library's dead letter. */
export type Sample = { readonly thrown: unknown } | { readonly told: ReportedFailure }

/** Failures with one cause and one remedy. A person would look at them together. */
export interface Family {
  readonly name: string
  readonly sample: (draw: Draw) => Sample
}

export type Families = Readonly<Record<string, (draw: Draw) => Sample>>

interface Thrown {
  /** Name of the error's class. */
  readonly type?: string
  readonly message: string
  /** Fields that the library sets on its errors. */
  readonly fields?: object
  readonly cause?: unknown
  /** Function and file of the user's own code. */
  readonly own?: readonly [name: string, file: string]
  /** Frames of libraries above it. */
  readonly libraries?: readonly string[]
}

/** Returns an error as a deployed service throws it, with its paths and line numbers. */
export function errorOf(draw: Draw, thrown: Thrown): Error {
  const { type = 'Error', message, fields = {}, cause, own = ['handle', 'orders.ts'] } = thrown
  const error = cause === undefined ? new Error(message) : new Error(message, { cause })
  const frames = [...(thrown.libraries ?? []), ...ownFrames(draw, own)]
  return Object.assign(error, fields, {
    name: type,
    stack: `${type}: ${message}\n${frames.map((frame) => `    at ${frame}`).join('\n')}`,
  })
}

export function thrown(draw: Draw, given: Thrown): Sample {
  return { thrown: errorOf(draw, given) }
}

function ownFrames(draw: Draw, [name, file]: readonly [string, string]): readonly string[] {
  const root = draw.pick([
    '/app',
    '/usr/src/app',
    'file:///srv/releases/20261115-3',
    '/opt/shop-2.14.0',
  ])
  const at = () => `${draw.int(3, 900)}:${draw.int(1, 80)}`
  return [
    `async ${name} (${root}/src/${file}:${at()})`,
    `async run (${root}/node_modules/@redrive/runtime/dist/call.js:${at()})`,
    'process.processTicksAndRejections (node:internal/process/task_queues:105:5)',
  ]
}

/** Returns a failure reported in headers: only text. */
export function told(given: { type: string; message: string; stack: string }): Sample {
  return { told: { ...given, at: undefined, attempts: 1 } }
}
