/** `pnpm run sbom [FILE]` writes the software bill of materials of the published packages, offline, from the lockfile. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { isMain, publicPackages, ROOT } from '../check/workspace.ts'
import { type Bom, bomOf, type Published } from './cyclonedx.ts'
import { readLockfile } from './lockfile.ts'

/** The packages that the build of a published package contains. An installation does not list them. */
const BUNDLED: Readonly<Record<string, Published['bundled']>> = {
  redrive: {
    folder: 'packages/cli',
    names: [
      '@bomb.sh/tab',
      '@clack/prompts',
      '@redrive/api',
      '@redrive/core',
      '@redrive/doctor',
      '@redrive/kafka',
      '@redrive/postgres',
      '@redrive/rabbitmq',
      '@redrive/runtime',
      '@redrive/storm',
      'acorn',
      'amqplib',
      'commander',
      'pg',
      'yaml',
      'zod',
    ],
  },
  '@redrive/server': {
    folder: 'packages/console',
    names: [
      '@codemirror/commands',
      '@codemirror/lang-json',
      '@codemirror/language',
      '@codemirror/lint',
      '@codemirror/search',
      '@codemirror/state',
      '@codemirror/view',
      '@lezer/highlight',
      '@tanstack/react-query',
      '@tanstack/react-router',
      '@tanstack/react-virtual',
      'react',
      'react-dom',
      'zod',
    ],
  },
}

/** Returns the bill of materials of this workspace. */
export function workspaceBom(): Bom {
  const published = publicPackages().map(({ name, folder }): Published => {
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      readonly version: string
    }
    const bundled = BUNDLED[name]
    return {
      name,
      version: manifest.version,
      folder: relative(ROOT, folder).replaceAll('\\', '/'),
      ...(bundled === undefined ? {} : { bundled }),
    }
  })
  return bomOf(readLockfile(readFileSync(join(ROOT, 'pnpm-lock.yaml'), 'utf8')), published)
}

if (isMain(import.meta)) {
  const text = `${JSON.stringify(workspaceBom(), undefined, 2)}\n`
  const [file] = process.argv.slice(2)
  if (file === undefined) process.stdout.write(text)
  else writeFileSync(file, text)
}
