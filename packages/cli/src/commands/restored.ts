import type { Client } from '@redrive/api'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { isForPeople, print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { confirmed, mutate } from '../server/mutate.ts'

const QUESTION =
  'Unfreeze replays? Replays made since the backup may be repeated: an inbox removes the duplicates, consumers without an inbox process them twice.'

/** Acknowledges a restore of the catalog, so that frozen replays continue. */
export async function acknowledgeRestore(io: Io, options: CommonOptions): Promise<ExitCode> {
  const client = connect(io, options)
  await printReason(io, client, options)
  await confirmed(io, options, QUESTION)
  const acknowledged = await mutate(io, client, options, 'acknowledgeRestore', {})
  if (acknowledged === undefined) return EXIT.ok
  print(io, options, {
    json: { acknowledged: true },
    human: (page) =>
      page.line`Acknowledged. Replays continue. List running ones: redrive replay list --state running`,
  })
  return EXIT.ok
}

/** Prints why replays are frozen on stderr, because it helps to decide and is not the result. */
async function printReason(io: Io, client: Client, options: CommonOptions): Promise<void> {
  if (!isForPeople(options)) return
  const { freezeReason } = await client.call('overview', {}, { signal: io.signal })
  // The server detects a restore only when a replay starts, so there may be an undetected one.
  if (freezeReason === undefined) say(io)`The server has not detected a restore so far.`
  else say(io)`Replays are frozen. ${freezeReason}`
}
