import type { Report } from '@redrive/doctor'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { hint, print } from '../print.ts'
import { type ConfigOptions, loaded } from '../server/config.ts'
import { filledAddress } from '../server/address.ts'
import { brokerAt, type Brokers, brokersIn } from '../server/brokers.ts'
import { type CertificateOptions, certificatesOf } from '../server/certificates.ts'
import { bold } from '../text/painted.ts'

export interface DoctorOptions extends CommonOptions, ConfigOptions, CertificateOptions {
  /** Names of checks whose findings are accepted. */
  readonly accept?: readonly string[]
}

/** Checks the live settings of brokers for risks of message loss. Changes nothing. */
export async function doctor(
  io: Io,
  addresses: readonly string[],
  options: DoctorOptions,
): Promise<ExitCode> {
  const [{ exitCodeOf, sectionsOf }, { ALL_CHECKS }] = await Promise.all([
    import('@redrive/doctor'),
    import('@redrive/doctor/internal'),
  ])
  const { accept = [] } = options
  const unknown = accept.filter((name) => !ALL_CHECKS.some(({ id }) => id === name))
  if (unknown.length > 0)
    throw new CommandError(
      EXIT.usage,
      `--accept: unknown check ${unknown.join(', ')}. docs/doctor.md lists the checks.`,
    )
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
  hint(io, options)`\nTo accept the findings of a check, add: --accept CHECK`
  return EXIT.failure
}

/** Diagnoses the named brokers, or those of the config, one after the other. Grades them as one deployment. */
async function reportOf(io: Io, named: readonly string[], options: DoctorOptions): Promise<Report> {
  const { diagnose, gradeOf } = await import('@redrive/doctor')
  const { accept = [] } = options
  const targets =
    named.length > 0
      ? await brokersAt(io, named, options)
      : await brokersIn((await loaded(io, options)).config)
  const brokers: Report['brokers'][number][] = []
  for (const target of targets) {
    brokers.push(...(await diagnose({ ...target, accept })).brokers)
  }
  return { brokers, graded: gradeOf(brokers.flatMap(({ findings }) => findings)), accepted: accept }
}

async function brokersAt(
  io: Io,
  named: readonly string[],
  options: DoctorOptions,
): Promise<readonly Brokers[]> {
  const addresses = await Promise.all(named.map((one) => filledAddress(io, one)))
  const tls = certificatesOf(io, options, addresses)
  return addresses.map((address) => brokerAt(address, tls))
}
