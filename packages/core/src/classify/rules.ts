import type { FailureClass } from '../failure.ts'
import { statusOf } from './http.ts'
import type { Thrown } from './names.ts'
import { isA, read } from './read.ts'
import { clip } from '../text.ts'
import { messageOf, typeOf } from './text.ts'
import type { Verdict } from './verdict.ts'

export type ErrorClass = abstract new (...args: never[]) => Error

/** A match as plain data, for configuration files. All given fields must match; a pattern without fields matches nothing. */
export interface ErrorPattern {
  /** The error's own code or the code Redrive shows: `ECONNREFUSED`, `23505`, `SQLSTATE 23505`, `HTTP 503`. */
  readonly code?: string | readonly string[]
  /** HTTP status, or a range with both ends included. */
  readonly status?: number | readonly [min: number, max: number]
  /** The error's type as Redrive shows it. */
  readonly type?: string
}

/** A function that matches an error. It must be quick and synchronous, because it runs on every failure. */
export type ErrorPredicate = (error: unknown) => boolean

export type Match = ErrorClass | ErrorPredicate | ErrorPattern

/**
 * A rule that sets the class of matching failures and overrides the built-in tables.
 * Rules are tried in order, each on the thrown error and then on its causes. The first match wins.
 */
export interface Rule {
  readonly class: FailureClass
  /** One match, or a list of which any one is enough. */
  readonly when: Match | readonly Match[]
}

export type Matches = readonly [Match, ...Match[]]

/** Creates a rule for an unreachable, slow or busy dependency: retry. */
export function transient(...when: Matches): Rule {
  return { class: 'transient', when }
}

/** Creates a rule for failures of domain rules: dead letter. */
export function business(...when: Matches): Rule {
  return { class: 'business', when }
}

/** Creates a rule for unreadable payloads: dead letter. */
export function schema(...when: Matches): Rule {
  return { class: 'schema', when }
}

/** Creates a rule for requests that a dependency understood and refused: dead letter. */
export function integration(...when: Matches): Rule {
  return { class: 'integration', when }
}

/** One error of a cause chain with the verdict of the built-in tables. */
export interface Link extends Thrown {
  readonly verdict: Verdict
  /** The verdict on the name of the error. It counts only when no error of the chain has another. */
  readonly named: Verdict | undefined
}

export interface RuleMatch {
  /** Index of the rule that matched. */
  readonly rule: number | undefined
  /** Rules that could not be evaluated, one sentence each. They counted as no match. */
  readonly problems: readonly string[]
}

const PROBLEM_MAX = 200

export function firstMatch(rules: readonly Rule[], links: readonly Link[]): RuleMatch {
  const problems: string[] = []
  const index = rules.findIndex((rule, at) => {
    const results = ask(rule, links)
    const problem = results.find((result) => typeof result === 'string')
    if (problem !== undefined) problems.push(clip(`classify[${at}]: ${problem}`, PROBLEM_MAX))
    return results.includes(true)
  })
  return { rule: index === -1 ? undefined : index, problems }
}

/** Whether a rule matches, or the reason why it could not be evaluated. */
type MatchResult = boolean | string

function ask(rule: Rule, links: readonly Link[]): readonly MatchResult[] {
  const matches = [rule.when].flat() as readonly Match[]
  return matches.flatMap((match) => links.map((link) => fit(match, link)))
}

function fit(match: Match, link: Link): MatchResult {
  if (typeof match !== 'function') return fitsPattern(match, link)
  return isErrorClass(match) ? isA(link.error, match) : callPredicate(match, link.error)
}

function isErrorClass(match: ErrorClass | ErrorPredicate): match is ErrorClass {
  return match === Error || isA(read(match, 'prototype'), Error)
}

/** Calls a predicate. A predicate that throws must not hide the failure, and must be reported. */
function callPredicate(predicate: ErrorPredicate, error: unknown): MatchResult {
  try {
    const result: unknown = predicate(error)
    // A promise is truthy: an async predicate would match everything.
    if (typeof result === 'object' && result !== null)
      return 'the predicate returned an object instead of true or false'
    return Boolean(result)
  } catch (thrown) {
    return `the predicate threw ${typeOf(thrown)}: ${messageOf(thrown)}`
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
