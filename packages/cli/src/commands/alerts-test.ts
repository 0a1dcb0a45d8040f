import type { ConfiguredChannel } from '@redrive/server/internal'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
import { type ConfigOptions, loaded } from '../server/config.ts'

export interface TestAlertsOptions extends CommonOptions, ConfigOptions {
  /** Shows the messages and sends nothing. */
  readonly dryRun?: boolean
}

type Channel = ConfiguredChannel['channel']
type Notices = Parameters<Channel['send']>[0]

interface TestResult {
  /** Place of the channel in the config. */
  readonly channel: string
  readonly name: string
  readonly messages?: readonly string[]
  /** Why the channel did not accept a message. */
  readonly error?: string
}

/** Sends an alert and its end to the channels of the config. Needs no database and no broker. */
export async function testAlerts(
  io: Io,
  wanted: string | undefined,
  options: TestAlertsOptions,
): Promise<ExitCode> {
  const { config } = await loaded(io, options)
  const { channelsOf, publicUrlIn, testNotices } = await import('@redrive/server/internal')
  const all = channelsOf(config, publicUrlIn(config))
  const chosen = all.filter(({ path }) => wanted === undefined || isNamed(path, wanted))
  if (chosen.length === 0)
    throw noChannel(
      all.map(({ path }) => path),
      wanted,
    )
  const notices = testNotices(config)
  const test = options.dryRun ? previewed : sent
  const results = await Promise.all(
    chosen.map(async ({ path, channel }): Promise<TestResult> => {
      const result = await test(channel, notices, io.signal)
      await channel.close()
      return { channel: path, name: channel.name, ...result }
    }),
  )
  show(io, options, results)
  return results.some(({ error }) => error !== undefined) ? EXIT.failure : EXIT.ok
}

/** `slack` names all channels of the kind, `slack[0]` one of them. */
const isNamed = (path: string, wanted: string) =>
  path === `alerts.${wanted}` || path.startsWith(`alerts.${wanted}[`)

function noChannel(known: readonly string[], wanted: string | undefined): CommandError {
  const names = known.map((path) => path.replace('alerts.', '')).join(', ')
  const what = wanted === undefined ? 'no channel' : `no channel "${wanted}"`
  const fix = names === '' ? 'Add one to alerts, see docs/alerts.md.' : `Channels: ${names}.`
  return new CommandError(EXIT.usage, `The config has ${what}. ${fix}`)
}

async function previewed(channel: Channel, notices: Notices) {
  return { messages: notices.map((one) => channel.preview([one])) }
}

async function sent(
  channel: Channel,
  notices: Notices,
  signal: AbortSignal,
): Promise<{ readonly error?: string }> {
  try {
    for (const one of notices) await channel.send([one], { signal })
    return {}
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

function show(io: Io, options: CommonOptions, results: readonly TestResult[]): void {
  print(io, options, {
    json: { channels: results },
    lines: results,
    human(page) {
      for (const { channel, name, messages, error } of results) {
        const outcome = error ?? 'accepted an alert and its end'
        page.line`${channel} (${name})${messages === undefined ? `: ${outcome}` : ''}`
        for (const message of messages ?? []) page.block(message)
      }
    },
  })
}
