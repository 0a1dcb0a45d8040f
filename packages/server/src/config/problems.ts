import { RedriveError } from '@redrive/core'
import type { z } from 'zod'
import type { Path, Problem } from './placeholders.ts'

type Issue = z.core.$ZodIssue

const UNKNOWN = 'unknown setting. To list all settings: redrive config schema'

/** Converts validation issues to problems, each with a sentence and its position in the config. */
export function problemsOf(issues: readonly Issue[]): readonly Problem[] {
  return issues.flatMap((issue) => problemOf(issue, []))
}

function problemOf(issue: Issue, parent: Path): readonly Problem[] {
  const path: Path = [...parent, ...(issue.path as Path)]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], text: UNKNOWN }))
  }
  if (issue.code === 'invalid_key')
    return [{ path, text: 'expected a name of 1 to 255 characters' }]
  if (issue.code === 'invalid_union') return problemsOfUnion(issue, path)
  if (issue.code !== 'invalid_type' || isCustomMessage(issue.message)) {
    return [{ path, text: issue.message }]
  }
  const got = issue.message.includes('received undefined') ? 'nothing' : 'another type'
  return [{ path, text: `expected ${KINDS[issue.expected] ?? issue.expected}, got ${got}` }]
}

/** Returns the problems of the union branch that matched the value best: the one with a nested path. */
function problemsOfUnion(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  path: Path,
): readonly Problem[] {
  const deeper = issue.errors.find((branch) => branch.some((one) => one.path.length > 0))
  if (deeper !== undefined) return deeper.flatMap((one) => problemOf(one as Issue, path))
  return [{ path, text: issue.message }]
}

/** Whether a schema of this package wrote the message. */
const isCustomMessage = (message: string) => !message.startsWith('Invalid input')

const KINDS: Readonly<Record<string, string>> = {
  object: 'an object with settings',
  record: 'an object with names and their settings',
  array: 'a list',
  string: 'text',
}

const shownPath = (path: Path) => (path.length === 0 ? 'the config' : path.join('.'))

/** Throws an error that lists the problems. Returns when the list is empty. */
export function refuse(from: string, problems: readonly Problem[]): void {
  if (problems.length === 0) return
  const lines = problems.map(({ path, text }) => `${shownPath(path)}: ${text}`)
  throw new RedriveError('POLICY_INVALID', `${from} is not valid:\n- ${lines.join('\n- ')}`, {
    problems: lines,
  })
}
