import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PackedPackages, packPackages, ROOT } from '@redrive/dev-support'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'

/** The settings that the command line of NestJS writes, as far as they matter. */
const TSCONFIG = {
  compilerOptions: {
    ...{ module: 'nodenext', target: 'es2023', strict: true, skipLibCheck: true, outDir: 'dist' },
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true, types: ['node'], rootDir: '.' },
  },
  include: ['*.ts'],
}

let packed: PackedPackages

beforeAll(() => {
  const folders = ['core', 'runtime', 'transports/memory', 'nestjs'].map((one) => `packages/${one}`)
  packed = packPackages(folders)
}, 600_000)
afterAll(() => packed.remove())

it.each([
  ['11', 'commonjs'],
  ['11', 'module'],
  ['12', 'commonjs'],
  ['12', 'module'],
])(
  'runs with NestJS %s in a project of type %s',
  (version, type) => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-nestjs-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const run = (command: string, ...args: readonly string[]) =>
      execFileSync(command, args, { cwd: folder, encoding: 'utf8' })
    copyFileSync(join(import.meta.dirname, 'versions-service.ts'), join(folder, 'service.ts'))
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type }))
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
    const nest = ['common', 'core', 'microservices'].map((name) => `@nestjs/${name}@${version}`)
    const others = ['reflect-metadata@0.2', 'rxjs@7', '@types/node@24']
    const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
    run('npm', ...install, ...packed.tarballs, ...nest, ...others)
    run(join(ROOT, 'node_modules/.bin/tsc'), '-p', '.')
    expect(run(process.execPath, 'dist/service.js')).toBe('order, shipment, up\n')
  },
  300_000,
)
