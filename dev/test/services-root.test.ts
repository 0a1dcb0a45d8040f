import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from '../check/workspace.ts'
import { makeTree } from './tree.ts'

/** Programs that replace those of the system. `apt-get` logs its user. */
const FAKES = {
  'bin/sudo': '#!/bin/sh\n[ -e refuses ] && exit 1\nshift\nAS=root exec "$@"\n',
  'bin/mkdir': '#!/bin/sh\n',
  'bin/flock': '#!/bin/sh\nshift\nexec "$@"\n',
  'bin/apt-get': '#!/bin/sh\necho "${AS:-user} $*" >>log\n',
}

/** A user that is not root; tests of root start the program as "nobody". */
const USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

function installAsUser(files: Readonly<Record<string, string>> = {}) {
  const library = readFileSync(join(ROOT, 'dev/services.d/lib/process.sh'), 'utf8')
  const root = makeTree({ ...FAKES, 'process.sh': library, ...files })
  chmodSync(root, 0o777)
  for (const path of Object.keys(FAKES)) chmodSync(join(root, path), 0o755)
  const script = 'set -euo pipefail; . ./process.sh; install_packages one two'
  const { status, stderr } = spawnSync('bash', ['-c', script], {
    ...USER,
    cwd: root,
    encoding: 'utf8',
    env: { PATH: `${root}/bin:${process.env['PATH']}`, service: 'fake', data: '.' },
  })
  const log = join(root, 'log')
  const calls = existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : []
  return { status, stderr, calls }
}

test('installs packages with sudo for a user who needs no password', () => {
  const { status, calls } = installAsUser()
  expect(calls).toEqual(['root update', 'root install -y --no-install-recommends one two'])
  expect(status).toBe(0)
})

test('names the command to run as root when sudo refuses', () => {
  const { status, stderr, calls } = installAsUser({ refuses: '' })
  expect(stderr).toBe(
    'fake: not installed; as root: apt-get install --no-install-recommends one two\n',
  )
  expect(status).toBe(1)
  expect(calls).toEqual([])
})
