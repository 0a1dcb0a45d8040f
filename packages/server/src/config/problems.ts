import { RedriveError } from '@redrive/core'
import type { z } from 'zod'
import type { Path, Problem } from './placeholders.ts'

type Issue = z.core.$ZodIssue

/** Every problem of a config, as sentences with the place they are about. */
export function problemsOf(issues: readonly Issue[]): readonly Problem[] {
  return issues.flatMap((issue) => problemOf(issue, []))
}

function problemOf(issue: Issue, above: Path): readonly Problem[] {
  const path: Path = [...above, ...(issue.path as Path)]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], text: 'there is no such setting' }))
  }
  if (issue.code === 'invalid_key')
    return [{ path, text: 'expected a name of 1 to 255 characters' }]
  if (issue.code === 'invalid_union') return ofUnion(issue, path)
  if (issue.code !== 'invalid_type' || isOwn(issue.message)) return [{ path, text: issue.message }]
  const got = issue.message.includes('received undefined') ? 'nothing' : 'something else'
  return [{ path, text: `expected ${KINDS[issue.expected] ?? issue.expected}, got ${got}` }]
}

/** When one branch got further into the value than the others, its problems are the ones meant. */
function ofUnion(issue: Extract<Issue, { code: 'invalid_union' }>, path: Path): readonly Problem[] {
  const deeper = issue.errors.find((branch) => branch.some((one) => one.path.length > 0))
  if (deeper !== undefined) return deeper.flatMap((one) => problemOf(one as Issue, path))
  return [{ path, text: issue.message }]
}

const isOwn = (message: string) => !message.startsWith('Invalid input')

const KINDS: Readonly<Record<string, string>> = {
  object: 'settings',
  record: 'settings by name',
  array: 'a list',
  string: 'text',
}

const shownPath = (path: Path) => (path.length === 0 ? 'the config' : path.join('.'))

/** What is missing is told once, by who knows why. */
export function refuse(from: string, problems: readonly Problem[]): void {
  if (problems.length === 0) return
  const lines = problems.map(({ path, text }) => `${shownPath(path)}: ${text}`)
  throw new RedriveError('POLICY_INVALID', `${from} cannot be used:\n- ${lines.join('\n- ')}`, {
    problems: lines,
  })
}
