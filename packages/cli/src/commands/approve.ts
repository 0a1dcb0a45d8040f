import type { Client, Run } from '@redrive/api'
import { CommandError, EXIT, EXIT_OF_PROBLEM, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { isForPeople, print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { resolveUniqueId } from '../server/resolve-id.ts'
import { confirmed, isForAnother, mutate } from '../server/mutate.ts'
import { Page } from '../text/page.ts'
import { counted } from '../text/format.ts'
import { showChange } from './run-change.ts'
import { IN_RUN, planText, runFacts, sum } from './run-text.ts'
import { follow, timeoutOf, type WaitOptions } from './watch.ts'

/** Starts a run if the approval rule allows the caller to. Otherwise prints who must approve it. */
export async function startReplay(io: Io, given: string, options: WaitOptions): Promise<ExitCode> {
  // Checked first, so that a wrong flag is reported before the run starts.
  const timeoutMs = timeoutOf(options.timeout)
  if (timeoutMs !== undefined && !options.wait) {
    throw new CommandError(EXIT.usage, '--timeout requires --wait.')
  }
  const client = connect(io, options)
  const run = await reviewed(io, client, given, options)
  if (run.state !== 'planned') throw notPlanned(run)
  const question = `Replay ${counted(sum(run.counts, IN_RUN), 'message')} to ${run.source}?`
  await confirmed(io, options, question)
  const started = await approve(io, client, run, options).catch((error: unknown) => {
    throw needsAnother(error, run)
  })
  if (started === undefined) return EXIT.ok
  if (options.wait) return follow(io, client, started, { ...options, timeoutMs })
  print(io, options, {
    json: started,
    human: (page) => page.line`Started. Follow it with: redrive replay watch ${run.id}`,
  })
  return EXIT.ok
}

/** Shows a run and its hash, and approves it. The server rejects the approval if the run has another hash. */
export async function approveReplay(
  io: Io,
  given: string,
  options: CommonOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const run = await reviewed(io, client, given, options)
  // The server decides whether the approval of a paused run has ended.
  if (run.state !== 'planned' && run.state !== 'paused') throw notPlanned(run)
  const isPaused = run.state === 'paused'
  const question = isPaused ? 'Approve again and resume: hash' : 'Approve hash'
  await confirmed(io, options, `${question} ${run.hash}, planned by ${run.plannedBy}?`)
  const approved = await approve(io, client, run, options)
  if (approved === undefined) return EXIT.ok
  print(io, options, {
    json: approved,
    human: (page) =>
      page.line`Approved and ${isPaused ? 'resumed' : 'started'}. Follow it with: redrive replay watch ${run.id}`,
  })
  return EXIT.ok
}

/** Prints the run on stderr, because it helps to decide and is not the result. */
async function reviewed(
  io: Io,
  client: Client,
  given: string,
  options: CommonOptions,
): Promise<Run> {
  const id = await resolveUniqueId(io, client, 'run', given)
  const run = await client.call('getReplay', { params: { id } }, { signal: io.signal })
  if (isForPeople(options)) {
    const page = new Page(io.stderr)
    runFacts(io, page, run)
    planText(page, run)
    await showChange(io, client, page, run)
  }
  return run
}

async function approve(
  io: Io,
  client: Client,
  run: Run,
  options: CommonOptions,
): Promise<Run | undefined> {
  const input = { params: { id: run.id }, body: { hash: run.hash } }
  return (await mutate(io, client, options, 'approveReplay', input))?.output
}

const notPlanned = (run: Run) =>
  new CommandError(
    EXIT.conflict,
    `Only a planned run can start, and this run is ${run.state}. Show it with: redrive replay show ${run.id}`,
  )

/** Adds what to do when the approval rule requires another person. Returns any other error unchanged. */
function needsAnother(error: unknown, { id, source, hash }: Run): unknown {
  if (!isForAnother(error)) return error
  return new CommandError(
    EXIT_OF_PROBLEM[error.code],
    `${error.message}\nAnother person with permission "approve" on source "${source}" must run: redrive approve ${id}\nBefore they confirm, the command must show them this hash: ${hash}`,
    { cause: error },
  )
}
