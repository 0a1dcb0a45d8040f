import {
  type Answer,
  ApiError,
  type Client,
  type Input,
  type PlainOperation,
  ROUTES,
} from '@redrive/api'
import { CommandError, EXIT } from '../exit.ts'
import { canAsk, type CommonOptions, type Io } from '../io.ts'
import { print } from '../print.ts'
import { safe, safeJson } from '../text/safe.ts'

/** Asks for a change, or says what would be asked for: undefined then. */
export async function mutate<K extends PlainOperation>(
  io: Io,
  client: Client,
  options: CommonOptions,
  operation: K,
  input: Input<K>,
): Promise<{ readonly answer: Answer<K> } | undefined> {
  if (options.dryRun) {
    wouldAsk(io, options, operation, input)
    return undefined
  }
  return { answer: await client.call(operation, input, { signal: io.signal }) }
}

function wouldAsk<K extends PlainOperation>(
  io: Io,
  options: CommonOptions,
  operation: K,
  input: Input<K>,
): void {
  const { method, path, summary } = ROUTES[operation]
  const request = { operation, method, path, ...(input as object) }
  print(io, options, {
    json: { dryRun: true, request },
    human: (page) => {
      page.line`Would ask: ${summary} (${method} ${path}). Nothing was done.`
      page.block(safeJson(input, 2))
    },
  })
}

/** An approval is refused to who asks, and someone else may give it. */
export const isForAnother = (error: unknown): error is ApiError =>
  error instanceof ApiError &&
  (error.code === 'forbidden' || error.problem.needsAnotherPerson === true)

/** Throws when there is something to ask and nobody to ask it. */
export function expectAnswer(io: Io, options: CommonOptions, question: string): void {
  if (options.yes || options.dryRun || canAsk(io)) return
  throw new CommandError(
    EXIT.usage,
    `${question} There is no terminal to ask on: add --yes to go on.`,
  )
}

/** Asks a person, unless `--yes` or `--dry-run` makes that needless. Throws when they say no or nobody is there. */
export async function confirmed(io: Io, options: CommonOptions, question: string): Promise<void> {
  expectAnswer(io, options, question)
  if (options.yes || options.dryRun) return
  // It may have words of a peer in it.
  const answer = await io.confirm(safe(question))
  if (answer === undefined) throw new CommandError(EXIT.interrupted, 'Nothing was done.')
  if (!answer) throw new CommandError(EXIT.failure, 'Nothing was done.')
}
