import type { Client, Run } from '@redrive/api'
import { CommandError, EXIT, EXIT_OF_PROBLEM, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { isForPeople, print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { certainId } from '../server/ids.ts'
import { confirmed, isForAnother, mutate } from '../server/mutate.ts'
import { Page } from '../text/page.ts'
import { counted } from '../text/words.ts'
import { showChange } from './run-change.ts'
import { IN_RUN, planText, runFacts, sum } from './run-text.ts'
import { follow, timeoutOf, type WaitOptions } from './watch.ts'

/** Lets a run go out, if the rule of the server allows it to who asks; else says who must. */
export async function startReplay(io: Io, given: string, options: WaitOptions): Promise<ExitCode> {
  // First: what was mistyped must not come to light when the run is on its way.
  const timeoutMs = timeoutOf(options.timeout)
  if (timeoutMs !== undefined && !options.wait) {
    throw new CommandError(
      EXIT.usage,
      '--timeout is how long to wait, and nobody waits: add --wait, or leave --timeout out.',
    )
  }
  const client = connect(io, options)
  const run = await looked(io, client, given, options)
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

/** Shows what is approved, and its hash. What is not what was shown is refused by the server. */
export async function approveReplay(
  io: Io,
  given: string,
  options: CommonOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const run = await looked(io, client, given, options)
  if (run.state !== 'planned') throw notPlanned(run)
  await confirmed(io, options, `Approve hash ${run.hash}, planned by ${run.plannedBy}?`)
  const approved = await approve(io, client, run, options)
  if (approved === undefined) return EXIT.ok
  print(io, options, {
    json: approved,
    human: (page) =>
      page.line`Approved, it goes out now. Follow it with: redrive replay watch ${run.id}`,
  })
  return EXIT.ok
}

/** On stderr: what a person decides about is no result. */
async function looked(io: Io, client: Client, given: string, options: CommonOptions): Promise<Run> {
  const id = await certainId(io, client, 'run', given)
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
  return (await mutate(io, client, options, 'approveReplay', input))?.answer
}

const notPlanned = (run: Run) =>
  new CommandError(
    EXIT.conflict,
    `The run is ${run.state} already. See it with: redrive replay show ${run.id}`,
  )

/** The rule is the server's; what to do about its refusal is said here. Any other refusal meets others too. */
function needsAnother(error: unknown, { id, source, hash }: Run): unknown {
  if (!isForAnother(error)) return error
  return new CommandError(
    EXIT_OF_PROBLEM[error.code],
    `${error.message}\nSomeone else who may approve for ${source} runs: redrive approve ${id}\nThey must see the hash ${hash}`,
    { cause: error },
  )
}
