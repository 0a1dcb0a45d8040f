import { shell } from '@redrive/doctor/internal'
import { loadNatsTopology } from '../composition/nats.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, print } from '../print.ts'
import { filledAddress } from '../server/address.ts'

export interface NatsTopologyOptions extends CommonOptions {
  /** The stream to consume. */
  readonly stream?: string
  /** The durable consumer of the stream. */
  readonly consumer?: string
  /** Subjects of a stream that does not exist yet. */
  readonly subject?: readonly string[]
  readonly prefix?: string
  readonly replicas?: number
}

/** Returns whether the address is one of NATS. */
export const isNats = (address: string): boolean =>
  ['nats:', 'tls:'].includes(URL.parse(address)?.protocol ?? '')

/** Prints what a consumer of a stream needs, for an administrator. Does not connect. */
export async function planNatsTopology(io: Io, options: NatsTopologyOptions): Promise<ExitCode> {
  const { planTopology } = await loadNatsTopology()
  const parts = planTopology(namedIn(options))
  print(io, options, {
    json: parts,
    lines: parts,
    human: (page) => {
      page.line`# NATS_URL and NATS_CREDS select the server and the user of the command "nats"`
      for (const { subject, body } of parts)
        page.block(`nats request ${shell(subject)} ${shell(JSON.stringify(body))}`, '')
    },
  })
  hint(io, options)`\nTo create them: redrive topology apply ADDRESS ${flagsOf(options)}`
  return EXIT.ok
}

/** Creates what a consumer of a stream needs. What exists already is not changed. */
export async function createNatsTopology(
  io: Io,
  given: string,
  options: NatsTopologyOptions,
): Promise<ExitCode> {
  const servers = await filledAddress(io, given)
  const { applyTopology } = await loadNatsTopology()
  const parts = await applyTopology({ servers, ...namedIn(options) })
  print(io, options, {
    json: parts,
    lines: parts,
    human: (page) => {
      for (const { kind, stream, consumer, isNew } of parts) {
        const name = consumer === undefined ? stream : `${stream} > ${consumer}`
        page.line`${isNew ? 'created' : 'exists '}  ${kind} ${name}`
      }
    },
  })
  return EXIT.ok
}

function namedIn({ stream, consumer, subject, prefix, replicas }: NatsTopologyOptions) {
  if (stream === undefined || consumer === undefined)
    throw new CommandError(
      EXIT.usage,
      'NATS needs --stream and --consumer, such as --stream ORDERS --consumer billing.',
    )
  return {
    stream,
    consumer,
    ...(subject === undefined ? {} : { subjects: subject }),
    ...(prefix === undefined ? {} : { prefix }),
    ...(replicas === undefined ? {} : { replicas }),
  }
}

function flagsOf(options: NatsTopologyOptions): string {
  const { stream, consumer, subjects = [], prefix, replicas } = namedIn(options)
  const flags = [`--stream ${shell(stream)}`, `--consumer ${shell(consumer)}`]
  for (const subject of subjects) flags.push(`--subject ${shell(subject)}`)
  if (prefix !== undefined) flags.push(`--prefix ${shell(prefix)}`)
  if (replicas !== undefined) flags.push(`--replicas ${replicas}`)
  return flags.join(' ')
}
