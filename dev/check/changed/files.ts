import { execFileSync } from 'node:child_process'
import { ROOT } from '../workspace.ts'

/** An error for a base that does not exist or cannot be found. Its message contains the remedy. */
export class BaseError extends Error {
  override readonly name = 'BaseError'
}

export interface Change {
  /** Files that differ from the base, with uncommitted and untracked ones. */
  readonly changed: readonly string[]
  /** The base, as readable text. */
  readonly since: string
}

/**
 * Returns the changes since the base. Default: on main the uncommitted changes; on a branch
 * everything since the common ancestor with main.
 */
export function changedFiles(base?: string, root: string = ROOT): Change {
  const git = gitIn(root)
  const since = base ?? defaultBase(git)
  const commit = found(() =>
    git('rev-parse', '--verify', '--quiet', '--end-of-options', `${since}^{commit}`),
  )
  if (commit === undefined) throw new BaseError(`There is no commit "${since}".`)
  const differing = git('diff', '--name-only', '--no-renames', commit, '--')
  const untracked = git('ls-files', '--others', '--exclude-standard')
  const changed = [...new Set(`${differing}${untracked}`.split('\n').filter(Boolean))].sort()
  return { changed, since: base ?? (since === 'HEAD' ? 'the last commit' : since.slice(0, 10)) }
}

/** Runs git and returns its output. Throws when git fails: an empty list would pass as "nothing changed". */
type Git = (...args: readonly string[]) => string

const gitIn =
  (root: string): Git =>
  (...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** Returns the commit that git finds; undefined when there is none. */
function found(lookUp: () => string): string | undefined {
  try {
    return lookUp().trim()
  } catch {
    return undefined
  }
}

function defaultBase(git: Git): string {
  if (git('branch', '--show-current').trim() === 'main') return 'HEAD'
  // In a rebase no branch is checked out, and a clone of a branch has main only at its origin.
  const [ancestor] = ['main', 'origin/main'].flatMap(
    (one) => found(() => git('merge-base', one, 'HEAD')) ?? [],
  )
  if (ancestor !== undefined) return ancestor
  throw new BaseError('There is no branch "main". Pass the commit to compare with.')
}
