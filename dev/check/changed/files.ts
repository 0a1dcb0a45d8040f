import { execFileSync } from 'node:child_process'
import { ROOT } from '../workspace.ts'

const git = (...args: readonly string[]): string =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/**
 * Returns the files that differ from the base, with those that are not committed or not tracked yet. Without a
 * base: on main what is not committed, on a branch what differs from main as well.
 */
export function changedFiles(base: string = defaultBase()): readonly string[] {
  const differing = git('diff', '--name-only', '--no-renames', base, '--')
  const untracked = git('ls-files', '--others', '--exclude-standard')
  return [...new Set(`${differing}${untracked}`.split('\n').filter(Boolean))].sort()
}

function defaultBase(): string {
  const branch = git('branch', '--show-current').trim()
  if (branch === 'main' || branch === '') return 'HEAD'
  const hasMain = git('branch', '--list', 'main').trim() !== ''
  return hasMain ? git('merge-base', 'main', 'HEAD').trim() : 'HEAD'
}
