import { spawnSync } from 'node:child_process'
import { chownSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Environment } from '../io.ts'

/** A user of the operating system. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/**
 * Returns the users that can run PostgreSQL, the best first. It refuses to run as root, so root starts it as
 * another user: the owner of its files, the caller of sudo, the owner of the project, or a user of the system.
 * `undefined` means the current user, who is not root.
 */
export function accountsFor(folder: string, env: Environment): readonly (Account | undefined)[] {
  if (process.getuid?.() !== 0) return [undefined]
  const { SUDO_UID, SUDO_GID } = env as Readonly<Record<string, string | undefined>>
  const owner = statSync(dirname(folder))
  const files = statSync(join(folder, 'postgres'), { throwIfNoEntry: false })
  const found = [
    // PostgreSQL refuses files of another user.
    ...(files === undefined ? [] : [{ uid: files.uid, gid: files.gid }]),
    { uid: Number(SUDO_UID ?? 0), gid: Number(SUDO_GID ?? SUDO_UID ?? 0) },
    { uid: owner.uid, gid: owner.gid },
    ...SYSTEM_USERS.flatMap((name) => accountNamed(name) ?? []),
  ]
  return found.filter(({ uid }) => uid > 0 && exists(uid))
}

/** Users without rights. The first exists where PostgreSQL is installed, the second nearly everywhere. */
const SYSTEM_USERS = ['postgres', 'nobody']

function accountNamed(name: string): Account | undefined {
  const [uid, gid] = [idOf('-u', name), idOf('-g', name)]
  return uid === undefined || gid === undefined ? undefined : { uid, gid }
}

function idOf(flag: string, name: string): number | undefined {
  const { status, stdout } = spawnSync('id', [flag, name], { encoding: 'utf8' })
  return status === 0 ? Number(stdout) : undefined
}

/** PostgreSQL needs the name of its user. */
const exists = (uid: number) => spawnSync('id', ['-un', String(uid)]).status === 0

/** Returns whether a user can run a program, or enter a folder. */
export function canUse(account: Account | undefined, path: string): boolean {
  if (account === undefined) return true
  return spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', path], { ...account }).status === 0
}

/** Gives a file or folder to the user that runs PostgreSQL. */
export function giveTo(account: Account | undefined, path: string): void {
  if (account !== undefined) chownSync(path, account.uid, account.gid)
}
