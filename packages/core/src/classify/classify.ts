import type { Failure } from '../failure.ts'
import { signatureOf } from '../signature.ts'
import { detach } from '../text.ts'
import { levelsOf } from './causes.ts'
import { detect, detectByName } from './detect.ts'
import { retryAfterOf } from './http.ts'
import { kindsOf } from './kinds.ts'
import type { Thrown } from './names.ts'
import { firstMatch, type Link, type Rule } from './rules.ts'
import { framesOf } from './stack.ts'
import { chainOf, MESSAGE_MAX, READ_MAX, typeOf, worded } from './text.ts'
import type { Verdict } from './verdict.ts'

export interface ClassifyOptions {
  /** The user's rules. They are tried before the built-in tables. */
  readonly rules: readonly Rule[]
  /** Name of the handler. The same error in another handler is another failure. */
  readonly handler: string
  /** False keeps stacks out of headers and catalogs. The signature is the same either way. */
  readonly includeStack: boolean
  /** Epoch ms. A Retry-After date is measured from it. */
  readonly now: number
}

/** Wrappers have one or two errors inside. */
const KIND_LEVELS = 3

export interface Diagnosis {
  readonly failure: Failure
  /** Index of the user rule that set the class; `undefined` when the built-in tables did. */
  readonly rule: number | undefined
  /** Rules that threw or returned no boolean, one sentence each. They counted as no match. */
  readonly ruleProblems: readonly string[]
}

/** Returns the failure for any thrown value. Never throws. */
export function classify(error: unknown, options: ClassifyOptions): Failure {
  return diagnose(error, options).failure
}

/** Classifies like `classify` and also returns the reason. Events and the console show it; it reveals broken rules. */
export function diagnose(error: unknown, options: ClassifyOptions): Diagnosis {
  const levels = levelsOf(error)
  const judged = levels.map((level) => level.map((thrown) => judge(thrown, options.now)))
  const links = judged.flat()
  const { rule, problems } = firstMatch(options.rules, links)
  const verdict = overall(judged)
  const chain = chainOf(levels.map(([first]) => first?.error))
  const facts = {
    class: options.rules[rule ?? -1]?.class ?? verdict.class,
    type: typeOf(error),
    code: verdict.code,
    message: worded(chain, MESSAGE_MAX),
  }
  // A known failure is identified by its class and code, an unknown one by its stack. The stack is read
  // only then: V8 formats it on first access, which costs more than everything else here.
  const isUnknown = facts.class === 'unknown'
  const stack = isUnknown || options.includeStack ? framesOf(error) : undefined
  const { handler } = options
  const failure: Failure = {
    ...facts,
    signature: signatureOf({
      ...facts,
      message: worded(chain, READ_MAX),
      handler,
      kinds: judged
        .slice(0, KIND_LEVELS)
        .flatMap(([first]) => (first ? kindsOf(first.error, first.names, verdict.code) : [])),
      stack: isUnknown ? stack : undefined,
    }),
    retryAfterMs: firstWait(links, options.now),
    // Checked at any depth: Node wraps the TimeoutError of a signal in an AbortError.
    timedOut: links.some(({ verdict, named }) => verdict.timedOut || named?.timedOut === true),
    stack: options.includeStack && stack !== undefined ? detach(stack) : undefined,
  }
  return { failure, rule, ruleProblems: problems }
}

function judge({ error, names }: Thrown, now: number): Link {
  return { error, names, verdict: detect(error, names, now), named: detectByName(error) }
}

/** Returns the verdict of the outermost level with a known class: it is closest to the handler's intent. */
function overall(levels: readonly (readonly Link[])[]): Omit<Verdict, 'timedOut'> {
  const decided =
    outermost(levels, ({ verdict }) => verdict) ??
    outermost(levels, ({ verdict, named }) => named ?? verdict)
  if (decided !== undefined) return decided
  const coded = levels.flat().find(({ verdict }) => verdict.code !== undefined)
  return { class: 'unknown', code: coded?.verdict.code }
}

function outermost(
  levels: readonly (readonly Link[])[],
  verdictOf: (link: Link) => Verdict,
): Verdict | undefined {
  for (const level of levels) {
    const verdict = agreed(level.map(verdictOf))
    if (verdict !== undefined) return verdict
  }
  return undefined
}

/**
 * Combines the members of an AggregateError. One transient member makes it transient, because another
 * try may then succeed. A permanent class needs all members, because giving up cannot be undone.
 */
function agreed(verdicts: readonly Verdict[]): Verdict | undefined {
  const transient = verdicts.find((verdict) => verdict.class === 'transient')
  if (transient !== undefined) return transient
  return verdicts.some((verdict) => verdict.class === 'unknown') ? undefined : verdicts[0]
}

function firstWait(links: readonly Link[], now: number): number | undefined {
  for (const link of links) {
    const waitMs = retryAfterOf(link.error, link.names, now)
    if (waitMs !== undefined) return waitMs
  }
  return undefined
}
