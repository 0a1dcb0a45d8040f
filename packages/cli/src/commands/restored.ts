import type { Client } from '@redrive/api'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { isForPeople, print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { confirmed, mutate } from '../server/mutate.ts'

const QUESTION =
  'Let replays go on? Those made since the backup may be made again: an inbox removes them, consumers without one do them twice.'

/** Someone has looked: replays that were frozen after a restore go on. */
export async function acknowledgeRestore(io: Io, options: CommonOptions): Promise<ExitCode> {
  const client = connect(io, options)
  await sayWhy(io, client, options)
  await confirmed(io, options, QUESTION)
  const acknowledged = await mutate(io, client, options, 'acknowledgeRestore', {})
  if (acknowledged === undefined) return EXIT.ok
  print(io, options, {
    json: { acknowledged: true },
    human: (page) =>
      page.line`Acknowledged, replays go on. Those under way: redrive replay list --state running`,
  })
  return EXIT.ok
}

/** On stderr: what a person decides about is no result. */
async function sayWhy(io: Io, client: Client, options: CommonOptions): Promise<void> {
  if (!isForPeople(options)) return
  const { frozenBecause } = await client.call('overview', {}, { signal: io.signal })
  // Nothing is known of a restore before someone replays: it may be so all the same.
  if (frozenBecause === undefined) say(io)`The server has noticed no restore so far.`
  else say(io)`Replays are frozen. ${frozenBecause}`
}
