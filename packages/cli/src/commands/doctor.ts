import type { Report } from '@redrive/doctor'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, print } from '../print.ts'
import { type ConfigOptions, loaded } from '../server/config.ts'
import { brokerAt, brokersIn } from '../server/brokers.ts'
import { bold } from '../text/painted.ts'

export interface DoctorOptions extends CommonOptions, ConfigOptions {
  /** Names of checks whose findings are accepted. */
  readonly accept?: readonly string[]
}

/** Looks at the live settings of brokers for the traps that messages are lost in. Changes nothing. */
export async function doctor(
  io: Io,
  addresses: readonly string[],
  options: DoctorOptions,
): Promise<ExitCode> {
  const { ALL_CHECKS, exitCodeOf, sectionsOf } = await import('@redrive/doctor')
  const { accept = [] } = options
  const unknown = accept.filter((name) => !ALL_CHECKS.some(({ id }) => id === name))
  if (unknown.length > 0)
    throw new CommandError(EXIT.usage, `--accept: there is no check ${unknown.join(', ')}.`)
  const report = await reportOf(io, addresses, options)
  print(io, options, {
    json: report,
    lines: report.brokers.flatMap(({ findings }) => findings),
    human: (page) => {
      for (const [at, { title, lines }] of sectionsOf(report).entries()) {
        if (at > 0) page.line``
        page.line`${bold(title)}`
        for (const line of lines) page.line`  ${line}`
      }
    },
  })
  if (exitCodeOf(report) === 0) return EXIT.ok
  hint(io, options)`\nWhat is meant to be so: --accept CHECK, and it no longer counts.`
  return EXIT.failure
}

/** Those that were named, or else those of the config: one after the other, as one deployment. */
async function reportOf(io: Io, named: readonly string[], options: DoctorOptions): Promise<Report> {
  const { diagnose, gradeOf } = await import('@redrive/doctor')
  const { accept = [] } = options
  const places =
    named.length > 0 ? named.map(brokerAt) : brokersIn((await loaded(io, options)).config)
  const brokers: Report['brokers'][number][] = []
  for (const place of places) {
    brokers.push(...(await diagnose({ ...place, accept })).brokers)
  }
  return { brokers, graded: gradeOf(brokers.flatMap(({ findings }) => findings)), accepted: accept }
}
