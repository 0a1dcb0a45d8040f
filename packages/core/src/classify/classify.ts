import type { Failure } from '../failure.ts'
import { signatureOf } from '../signature.ts'
import { levelsOf } from './causes.ts'
import { detect, type Verdict } from './detect.ts'
import { retryAfterOf } from './http.ts'
import { firstMatch, type Link, type Rule } from './rules.ts'
import { framesOf } from './stack.ts'
import { chainOf, MESSAGE_MAX, SIGNED_MAX, typeOf, worded } from './text.ts'

export interface ClassifyOptions {
  /** The user's rules: tried before everything Redrive knows. */
  readonly rules: readonly Rule[]
  /** Name of the handler; the same error in another handler is another failure. */
  readonly handler: string
  /** False keeps stacks out of headers and catalogs. The signature is the same either way. */
  readonly includeStack: boolean
  /** Epoch ms; a Retry-After date is measured from it. */
  readonly now: number
}

export interface Diagnosis {
  readonly failure: Failure
  /** Index of the user rule that gave the class; `undefined` when the built-in tables did. */
  readonly rule: number | undefined
  /** Rules that threw or did not answer, one sentence each; they counted as no match. */
  readonly ruleProblems: readonly string[]
}

/** The failure any thrown value stands for. Never throws. */
export function classify(error: unknown, options: ClassifyOptions): Failure {
  return diagnose(error, options).failure
}

/** As `classify`, and why: for events, for the console, and to see a rule that is itself broken. */
export function diagnose(error: unknown, options: ClassifyOptions): Diagnosis {
  const levels = levelsOf(error)
  const judged = levels.map((level) => level.map(judge))
  const links = judged.flat()
  const { rule, problems } = firstMatch(options.rules, links)
  const verdict = overall(judged)
  const chain = chainOf(levels)
  const facts = {
    class: options.rules[rule ?? -1]?.class ?? verdict.class,
    type: typeOf(error),
    code: verdict.code,
    message: worded(chain, MESSAGE_MAX),
  }
  // What is recognised is known by what it is, the rest by where it came from. Not read otherwise: V8
  // writes a stack down when it is first read, which costs more than everything else here.
  const isUnknown = facts.class === 'unknown'
  const stack = isUnknown || options.includeStack ? framesOf(error) : undefined
  const { handler } = options
  const failure: Failure = {
    ...facts,
    signature: signatureOf({
      ...facts,
      message: worded(chain, SIGNED_MAX),
      handler,
      stack: isUnknown ? stack : undefined,
    }),
    retryAfterMs: firstWait(links, options.now),
    // At any depth: Node wraps the TimeoutError of a signal in an AbortError.
    timedOut: links.some((link) => link.verdict.timedOut),
    stack: options.includeStack ? stack : undefined,
  }
  return { failure, rule, ruleProblems: problems }
}

function judge(error: unknown): Link {
  return { error, verdict: detect(error) }
}

/** The outermost level that knows decides: it is the nearest to what the handler meant. */
function overall(levels: readonly (readonly Link[])[]): Omit<Verdict, 'timedOut'> {
  const decided = levels.map(agreed).find((verdict) => verdict !== undefined)
  if (decided !== undefined) return decided
  const code = levels.flat().find((link) => link.verdict.code !== undefined)?.verdict.code
  return { class: 'unknown', code }
}

/**
 * The members of an AggregateError: one transient is enough, because another try may then succeed;
 * a permanent class needs all of them, because giving up is the answer that cannot be taken back.
 */
function agreed(level: readonly Link[]): Verdict | undefined {
  const verdicts = level.map((link) => link.verdict)
  const transient = verdicts.find((verdict) => verdict.class === 'transient')
  if (transient !== undefined) return transient
  return verdicts.some((verdict) => verdict.class === 'unknown') ? undefined : verdicts[0]
}

function firstWait(links: readonly Link[], now: number): number | undefined {
  for (const link of links) {
    const waitMs = retryAfterOf(link.error, now)
    if (waitMs !== undefined) return waitMs
  }
  return undefined
}
