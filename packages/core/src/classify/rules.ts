import type { FailureClass } from '../failure.ts'
import type { Verdict } from './detect.ts'
import { statusOf } from './http.ts'
import { isA, read } from './read.ts'
import { clip } from '../text.ts'
import { messageOf, typeOf } from './text.ts'

export type ErrorClass = abstract new (...args: never[]) => Error

/** What a configuration file can say. All given fields must match; one without fields matches nothing. */
export interface ErrorPattern {
  /** The error's own code or the one Redrive shows: `ECONNREFUSED`, `23505`, `SQLSTATE 23505`, `HTTP 503`. */
  readonly code?: string | readonly string[]
  /** HTTP status, or a range with both ends included. */
  readonly status?: number | readonly [min: number, max: number]
  /** The error's type as Redrive shows it. */
  readonly type?: string
}

/** Must be quick and must not wait: it runs on every failure. */
export type ErrorPredicate = (error: unknown) => boolean

export type Match = ErrorClass | ErrorPredicate | ErrorPattern

/**
 * Failures that match are of this class, whatever Redrive would have thought.
 * Rules are tried in order, each on the thrown error and then on its causes; the first match wins.
 */
export interface Rule {
  readonly class: FailureClass
  /** One match, or several of which any is enough. */
  readonly when: Match | readonly Match[]
}

export type Matches = readonly [Match, ...Match[]]

/** The dependency was unreachable, slow or busy: retry. */
export function transient(...when: Matches): Rule {
  return { class: 'transient', when }
}

/** The rules of the domain say no: dead letter. */
export function business(...when: Matches): Rule {
  return { class: 'business', when }
}

/** The payload cannot be read: dead letter. */
export function schema(...when: Matches): Rule {
  return { class: 'schema', when }
}

/** A dependency understood us and refused: dead letter. */
export function integration(...when: Matches): Rule {
  return { class: 'integration', when }
}

/** One error of a cause chain and what the built-in tables say of it. */
export interface Link {
  readonly error: unknown
  readonly verdict: Verdict
}

export interface RuleMatch {
  /** Index of the rule that matched. */
  readonly rule: number | undefined
  /** Rules that could not be asked, one sentence each. They counted as no match. */
  readonly problems: readonly string[]
}

const PROBLEM_MAX = 200

export function firstMatch(rules: readonly Rule[], links: readonly Link[]): RuleMatch {
  const problems: string[] = []
  const index = rules.findIndex((rule, at) => {
    const answers = ask(rule, links)
    const problem = answers.find((answer) => typeof answer === 'string')
    if (problem !== undefined) problems.push(clip(`classify[${at}]: ${problem}`, PROBLEM_MAX))
    return answers.includes(true)
  })
  return { rule: index === -1 ? undefined : index, problems }
}

/** Does it fit, or why could it not be asked? */
type Answer = boolean | string

function ask(rule: Rule, links: readonly Link[]): readonly Answer[] {
  const matches = [rule.when].flat() as readonly Match[]
  return matches.flatMap((match) => links.map((link) => fit(match, link)))
}

function fit(match: Match, link: Link): Answer {
  if (typeof match !== 'function') return fitsPattern(match, link)
  return isErrorClass(match) ? isA(link.error, match) : askPredicate(match, link.error)
}

function isErrorClass(match: ErrorClass | ErrorPredicate): match is ErrorClass {
  return match === Error || isA(read(match, 'prototype'), Error)
}

/** A rule that throws must not hide the failure it was asked about, nor go unnoticed. */
function askPredicate(predicate: ErrorPredicate, error: unknown): Answer {
  try {
    const answer: unknown = predicate(error)
    // A promise is truthy: an async predicate would match everything.
    if (typeof answer === 'object' && answer !== null)
      return 'the predicate answered with an object'
    return Boolean(answer)
  } catch (thrown) {
    return `the predicate threw ${typeOf(thrown)}: ${messageOf([[thrown]])}`
  }
}

function fitsPattern(pattern: ErrorPattern, link: Link): boolean {
  const { code, status, type } = pattern
  if (code === undefined && status === undefined && type === undefined) return false
  return (
    (code === undefined || fitsCode(code, link)) &&
    (status === undefined || fitsStatus(status, statusOf(link.error))) &&
    (type === undefined || type === typeOf(link.error))
  )
}

function fitsCode(wanted: string | readonly string[], link: Link): boolean {
  const shown = [read(link.error, 'code'), link.verdict.code]
  const codes = typeof wanted === 'string' ? [wanted] : wanted
  return codes.some((code) => shown.includes(code))
}

function fitsStatus(wanted: number | readonly [number, number], status?: number): boolean {
  if (status === undefined) return false
  const [min, max] = typeof wanted === 'number' ? [wanted, wanted] : wanted
  return status >= min && status <= max
}
