import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ROOT } from '../check/workspace.ts'
import { makeTree } from './tree.ts'

/** Writes its calls to the log. `pnpm check` needs time to end after SIGTERM, and its worker needs more. */
const PNPM = `#!/bin/sh
trap 'sleep 0.3; echo "check ended" >>log; exit 1' TERM
echo "pnpm $*" >>log
[ -e fails ] && exit 3
[ -e passes ] && exit 0
sh -c 'trap "sleep 0.6; exit" TERM; echo $$ >worker; sleep 300 & wait' & wait
`

/** A worker of the check could start a server again after `down`. */
const SERVICES = `#!/bin/sh
echo "services $1" >>log
[ "$1" = up ] || ! kill -0 "$(cat worker 2>/dev/null)" 2>/dev/null || echo "a worker runs" >>log
`

const PROGRAMS = {
  '.ci/run': readFileSync(join(ROOT, '.ci/run'), 'utf8'),
  'dev/setup': '#!/bin/sh\n',
  'dev/services': SERVICES,
  'bin/pnpm': PNPM,
}

/** Starts `.ci/run` in a tree where all other programs are small scripts. */
function start(files: Readonly<Record<string, string>> = {}) {
  const root = makeTree({
    ...PROGRAMS,
    'dev/env': 'PATH=$PWD/bin:$PATH\n',
    'dev/check/times.ts': '',
    'dev/check/summary.ts': '',
    ...files,
  })
  for (const path of Object.keys(PROGRAMS)) chmodSync(join(root, path), 0o755)
  const run = spawn(join(root, '.ci/run'), { cwd: root, stdio: 'ignore' })
  onTestFinished(() => void run.kill('SIGKILL'))
  const ended = new Promise((resolve) => run.on('exit', (code, signal) => resolve(signal ?? code)))
  const read = (name: string) => {
    const path = join(root, name)
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
  }
  return { run, ended, read }
}

const isAlive = (pid: number) => existsSync(`/proc/${pid}`)

test.each([
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)('%s ends the check first, and then the servers', async (signal, status) => {
  const { run, ended, read } = start()
  await expect.poll(() => read('worker')).toHaveLength(1)
  const [worker] = read('worker').map(Number)
  onTestFinished(() => {
    if (worker !== undefined && isAlive(worker)) process.kill(worker, 'SIGKILL')
  })
  // To the script alone, as a job of a runner does it.
  run.kill(signal)
  expect(await ended).toBe(status)
  expect(read('log').filter((line) => line !== 'services up')).toEqual([
    'pnpm check',
    'check ended',
    'services down',
  ])
})

test('stops the servers after the proofs', async () => {
  const { ended, read } = start({ passes: '' })
  expect(await ended).toBe(0)
  expect(read('log').filter((line) => line !== 'services up')).toEqual([
    'pnpm check',
    'pnpm proofs merge',
    'services down',
  ])
})

test('runs no proof after a failed check, and keeps its status', async () => {
  const { ended, read } = start({ fails: '' })
  expect(await ended).toBe(3)
  expect(read('log').filter((line) => line !== 'services up')).toEqual([
    'pnpm check',
    'services down',
  ])
})
