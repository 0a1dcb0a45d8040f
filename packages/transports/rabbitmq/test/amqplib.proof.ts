import { execFileSync, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT, urlsOf } from '@redrive/dev-support'
import { afterAll, beforeAll, expect, it } from 'vitest'
import manifest from '../package.json' with { type: 'json' }

/** The oldest version of each part of the peer range, and newer ones that most programs have. */
const VERSIONS = ['0.10.6', '0.10.9', '1.0.3', '1.2.0', '2.0.0', '2.3.1']
/** Since 1.1, amqplib contains its types. */
const HAS_TYPES = /^(?:1\.[1-9]|[2-9])/

const PRINTED = `dead letter: business, CardDeclined: the card of order 3 was declined
types: {"tenant":"int64"}
replay-1: handled
order 1, attempt 1, cycle 1
order 2, attempt 2, cycle 1
order 3, attempt 1, cycle 2
`

const TSCONFIG = {
  compilerOptions: {
    ...{ strict: true, noEmit: true, target: 'es2023', lib: ['es2024'], types: ['node'] },
    ...{ module: 'nodenext', verbatimModuleSyntax: true, skipLibCheck: false },
  },
  files: ['amqplib-service.ts'],
}

const [url = ''] = await urlsOf('rabbitmq', 'amqp')
const packed = mkdtempSync(join(tmpdir(), 'redrive-packed-'))
const PACKAGES = ['packages/core', 'packages/runtime', 'packages/transports/rabbitmq']
const tarballs = PACKAGES.map((folder) => join(packed, `${folder.replace(/\W/g, '-')}.tgz`))

beforeAll(() => {
  execFileSync('pnpm', ['exec', 'tsc', '-b'], { cwd: ROOT })
  for (const [index, folder] of PACKAGES.entries()) {
    const args = ['pack', '--out', tarballs[index] ?? '']
    execFileSync('pnpm', args, { cwd: join(ROOT, folder), stdio: 'ignore' })
  }
})
afterAll(() => rmSync(packed, { recursive: true }))

/** Runs a command in a folder and returns all its output; throws with the output when it fails. */
function run(folder: string, command: string, ...args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8' })
  if (status === 0) return `${stdout}${stderr}`
  throw new Error(`${command} ${args[0] ?? ''} failed:\n${stdout}${stderr}`)
}

const INSTALL = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=warn']

/** Returns the warnings of npm. A setting of the machine that npm does not know says nothing about the packages. */
const warningsIn = (output: string) =>
  output.split('\n').filter((line) => line.startsWith('npm ') && !/Unknown .* config/.test(line))

it.each(VERSIONS)(
  'a service compiles and runs from the packed packages with amqplib %s',
  (version) => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-amqplib-'))
    try {
      const service = 'amqplib-service.ts'
      copyFileSync(join(import.meta.dirname, service), join(folder, service))
      writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
      const types = ['@types/node@24', ...(HAS_TYPES.test(version) ? [] : ['@types/amqplib@0.10'])]
      const output = run(folder, 'npm', ...INSTALL, ...tarballs, `amqplib@${version}`, ...types)
      expect(warningsIn(output)).toEqual([])
      run(folder, join(ROOT, 'node_modules/.bin/tsc'), '-p', folder)
      const printed = run(folder, process.execPath, service, url, `amqplib-${randomUUID()}`)
      expect(printed).toBe(PRINTED)
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
)

it('the oldest version of each part of the peer range is tested', () => {
  const oldest = manifest.peerDependencies.amqplib.split(' || ').map((range) => range.slice(1))
  expect(VERSIONS).toEqual(expect.arrayContaining(oldest))
})
